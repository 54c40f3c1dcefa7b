// npm run docs:api: the API reference as HTML, in docs/api. TypeDoc and its TypeScript are installed in docs/ alone.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import './embed.mjs';
import { root } from '../jest-run.mjs';

function run(program, ...args) {
  const { status, error } = spawnSync(program, args, {
    cwd: join(root, 'docs'),
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if (error) console.error(error.message);
  if (status !== 0) process.exit(status ?? 1);
}

run('npm', 'ci', '--no-audit', '--no-fund');
run(process.execPath, 'node_modules/typedoc/bin/typedoc', ...process.argv.slice(2));
