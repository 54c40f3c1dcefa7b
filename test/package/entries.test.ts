import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

describe('package.json', () => {
  const names = readdirSync(join(ROOT, 'lib'))
    .filter((file) => file.endsWith('.ts') && file !== 'cli.ts')
    .map((file) => file.replace(/\.ts$/, ''));
  const others = names.filter((name) => name !== 'index');

  // If this fails, `node .ci/build/entries.mjs` writes what is missing.
  it('exports each file of lib, to import and to require', () => {
    const paths = ['.', ...others.map((name) => `./${name}`), './package.json'];
    expect(Object.keys(manifest.exports).sort()).toEqual(paths.sort());
    for (const name of names) {
      expect(manifest.exports[name === 'index' ? '.' : `./${name}`]).toEqual({
        import: { types: `./dist/esm/${name}.d.ts`, default: `./dist/esm/${name}.js` },
        require: { types: `./dist/cjs/${name}.d.ts`, default: `./dist/cjs/${name}.js` },
      });
    }
  });

  it('has the command', () => {
    expect(manifest.bin).toEqual({ 'nestjs-redis-lock': 'dist/esm/cli.js' });
  });

  it('names the types of each entry for compilers that do not read exports', () => {
    expect(manifest.types).toBe('./dist/cjs/index.d.ts');
    expect(manifest.typesVersions).toEqual({
      '*': Object.fromEntries(others.map((name) => [name, [`./dist/cjs/${name}.d.ts`]])),
    });
  });
});
