import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { transform } from '@swc/core';

/** The entries of the package: `nestjs-redis-lock/otel` is lib/otel.ts. */
const OURS = /^nestjs-redis-lock(?:\/([\w-]+))?$/;

export function resolve(specifier, context, next) {
  const [ours, entry = 'index'] = OURS.exec(specifier) ?? [];
  if (ours) {
    return next(new URL(`../../../lib/${entry}.ts`, import.meta.url).href, context);
  }
  if (/^\.{1,2}\/.*\.js$/.test(specifier) && context.parentURL?.endsWith('.ts')) {
    const source = new URL(specifier.replace(/\.js$/, '.ts'), context.parentURL);
    return next(existsSync(source) ? source.href : specifier, context);
  }
  return next(specifier, context);
}

export async function load(url, context, next) {
  if (!url.endsWith('.ts')) {
    return next(url, context);
  }
  const filename = fileURLToPath(url);
  const { code } = await transform(readFileSync(filename, 'utf8'), {
    filename,
    sourceMaps: 'inline',
    swcrc: false,
    jsc: {
      parser: { syntax: 'typescript', decorators: true },
      transform: { legacyDecorator: true, decoratorMetadata: true },
      target: 'es2022',
    },
    module: { type: 'es6' },
  });
  return { format: 'module', source: code, shortCircuit: true };
}
