// Lets a plain Node process run the TypeScript sources: node --import ./test/support/jest/typescript-loader.mjs
// some-file.ts
import { register } from 'node:module';

register('./typescript-hooks.mjs', import.meta.url);
