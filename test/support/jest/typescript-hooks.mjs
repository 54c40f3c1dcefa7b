import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { pathFor, read, write } from './typescript-cache.cjs';

/** The entries of the package: `nestjs-redis-lock/otel` is lib/otel.ts. */
const OURS = /^nestjs-redis-lock(?:\/([\w-]+))?$/;
/** The modules that replace the library's own with TEST_CLIENT=node-redis. */
const INSTEAD = {
  'choose-client.js': new URL('../open-by-node-redis.ts', import.meta.url).href,
  'load-client.js': new URL('../node-redis-alone.ts', import.meta.url).href,
};
const LIBRARY = new URL('../../../lib/', import.meta.url).href;

export async function resolve(specifier, context, next) {
  const [ours, entry = 'index'] = OURS.exec(specifier) ?? [];
  if (ours) return typescript(new URL(`${entry}.ts`, LIBRARY).href);
  const [parent, suite] = context.parentURL?.split('?') ?? [];
  const instead = process.env.TEST_CLIENT === 'node-redis' && INSTEAD[specifier.split('/').at(-1)];
  if (instead && parent !== instead) return typescript(instead);
  if (specifier === '@jest/globals' && suite) {
    return { url: new URL(`jest-globals.mjs?${suite}`, import.meta.url).href, shortCircuit: true };
  }
  if (/^\.{1,2}\/.*\.js$/.test(specifier) && parent?.endsWith('.ts')) {
    const source = new URL(specifier.replace(/\.js$/, '.ts'), parent);
    if (existsSync(source)) return typescript(source.href, suite);
  }
  const found = await next(specifier, context);
  return found.url.endsWith('.ts') ? typescript(found.url, suite) : found;
}

/**
 * The suites of a jest worker share the library. Each suite has its own copy of everything else that it imports.
 */
function typescript(url, suite) {
  const query = suite === undefined || url.startsWith(LIBRARY) ? '' : `?${suite}`;
  return { url: url + query, format: 'module', shortCircuit: true };
}

export async function load(url, context, next) {
  if (!/\.ts(\?|$)/.test(url)) {
    return next(url, context);
  }
  const filename = fileURLToPath(url);
  const source = readFileSync(filename, 'utf8');
  const path = pathFor(filename, source);
  const code = read(path) ?? (await transpile(source, filename, path));
  return { format: 'module', source: code, shortCircuit: true };
}

async function transpile(source, filename, path) {
  const { transform } = await import('@swc/core');
  const { code, map } = await transform(source, {
    filename,
    sourceMaps: true,
    swcrc: false,
    jsc: {
      parser: { syntax: 'typescript', decorators: true },
      transform: { legacyDecorator: true, decoratorMetadata: true },
      target: 'es2022',
    },
    module: { type: 'es6' },
  });
  const text = `${code}\n//# sourceMappingURL=${pathToFileURL(`${path}.map`)}\n`;
  write(`${path}.map`, map);
  write(path, text);
  return text;
}
