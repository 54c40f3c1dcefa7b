// Compiles programs of the app with SWC, as `nest build --builder swc` does:
//   node swc.mjs <commonjs|es6> <folder> <file ...>
import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [type, folder, ...files] = process.argv.slice(2);
const { transformFileSync } = createRequire(import.meta.url)('@swc/core');

mkdirSync(folder, { recursive: true });
for (const file of files) {
  const { code } = transformFileSync(file, {
    swcrc: false,
    module: { type },
    jsc: {
      target: 'es2022',
      parser: { syntax: 'typescript', decorators: true },
      transform: { legacyDecorator: true, decoratorMetadata: true, useDefineForClassFields: false },
    },
  });
  writeFileSync(join(folder, file.replace(/\.ts$/, '.js')), code);
}
