// npm pack and npm publish read package.json after `prepack` and before `postpack`:
//   node .ci/build/manifest.mjs publish [folder]    leaves in package.json only what users of the package need
//   node .ci/build/manifest.mjs restore [folder]    brings the whole file back
// If npm is interrupted in between, `git restore package.json` does that.
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Fields for developers of the library. An installation of the package must not run any script. */
const OURS = ['scripts', 'devDependencies', 'overrides', 'allowScripts'];

const [step, folder = fileURLToPath(new URL('../..', import.meta.url))] = process.argv.slice(2);
const path = resolve(folder, 'package.json');
const whole = resolve(folder, 'dist/package.json'); // not published

if (step === 'publish') {
  const text = readFileSync(path, 'utf8');
  mkdirSync(join(folder, 'dist'), { recursive: true });
  writeFileSync(whole, text);
  const manifest = JSON.parse(text);
  for (const field of OURS) delete manifest[field];
  writeFileSync(path, `${JSON.stringify(manifest, null, 2)}\n`);
} else if (step === 'restore' && existsSync(whole)) {
  renameSync(whole, path);
}
