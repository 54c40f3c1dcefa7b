// Builds the library, then the sample app.
//   node .ci/build/build.mjs [folder]    default: dist
import { execFile } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { bundleLibrary } from './bundle-library.mjs';
import './embed.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const target = resolve(process.argv[2] ?? join(root, 'dist'));

async function tsc(...options) {
  const compiler = join(root, 'node_modules/typescript/bin/tsc');
  try {
    await promisify(execFile)(process.execPath, [compiler, ...options], { cwd: root });
  } catch (error) {
    console.error(error.stdout || error.message);
    process.exit(1);
  }
}

const modules = join(target, 'modules');
rmSync(target, { recursive: true, force: true });
await tsc('-p', 'tsconfig.build.json', '--outDir', modules);
await bundleLibrary(modules, target);
rmSync(modules, { recursive: true });

if (target === join(root, 'dist') && existsSync(join(root, 'sample-app/main.ts'))) {
  await tsc('-p', 'tsconfig.sample-app.json'); // after the library, which it imports by its name
}
