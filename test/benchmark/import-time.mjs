// npm run bench -- import: how long it takes to load the library in a new process that has loaded its peers.
//   npm run bench -- import [folder ...]    other builds to compare, each with esm and cjs in it, within
//                                           reach of the same node_modules
import { execFileSync } from 'node:child_process';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const ROUNDS = 31;
const PEERS = ['reflect-metadata', '@nestjs/common', '@nestjs/core', 'ioredis', 'rxjs', 'rxjs/operators'];
const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const LOAD = {
  esm: (file) => `await import(${JSON.stringify(pathToFileURL(file).href)})`,
  cjs: (file) => `createRequire(${JSON.stringify(file)})(${JSON.stringify(file)})`,
};

function measure(folder, kind, entry) {
  const program = `
    import { createRequire } from 'node:module';
    for (const peer of ${JSON.stringify(PEERS)}) await import(peer);
    const start = performance.now();
    ${LOAD[kind](join(folder, kind, `${entry}.js`))};
    console.log(performance.now() - start);`;
  return Number(
    execFileSync(process.execPath, ['--input-type=module', '-e', program], { cwd: ROOT, encoding: 'utf8' }),
  );
}

const folders = [join(ROOT, 'dist'), ...process.argv.slice(2).map((folder) => resolve(folder))];
const cases = folders.flatMap((folder) =>
  ['esm', 'cjs'].flatMap((kind) => ['index', 'core'].map((entry) => ({ folder, kind, entry, times: [] }))),
);
// In turns, so that a temporarily busy machine affects all of them alike.
for (let round = 0; round < ROUNDS; round++) {
  for (const { folder, kind, entry, times } of cases) times.push(measure(folder, kind, entry));
}
console.log(`Milliseconds beyond the peers, ${ROUNDS} processes each, Node.js ${process.version}:`);
for (const { folder, kind, entry, times } of cases) {
  const sorted = times.sort((a, b) => a - b);
  const at = (share) => sorted[Math.floor(share * (ROUNDS - 1))].toFixed(1);
  console.log(`${join(folder, kind, `${entry}.js`)}  median ${at(0.5)}  (quartiles ${at(0.25)} to ${at(0.75)})`);
}
