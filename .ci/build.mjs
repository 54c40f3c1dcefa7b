// Builds the library twice, as ES modules and as CommonJS, each with its types, then the sample app.
//   node .ci/build.mjs [folder]    default: dist
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import './embed-lua.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
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

// The nearest package.json tells Node, and TypeScript, of which kind the .js and .d.ts files below it are.
function moduleKind(folder, type) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify({ type })}\n`);
}

const esm = join(target, 'esm');
const cjs = join(target, 'cjs');
rmSync(target, { recursive: true, force: true });
moduleKind(esm, 'module');
moduleKind(cjs, 'commonjs');
const library = ['-p', 'tsconfig.build.json'];
await Promise.all([
  tsc(...library, '--outDir', esm),
  tsc(...library, '--outDir', cjs, '--module', 'commonjs', '--moduleResolution', 'bundler'),
]);

if (target === join(root, 'dist') && existsSync(join(root, 'sample-app/main.ts'))) {
  await tsc('-p', 'tsconfig.sample-app.json'); // after the library, which it imports by its name
}
