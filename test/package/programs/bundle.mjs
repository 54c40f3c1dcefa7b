// Bundles a compiled program of the app into one file, library and NestJS included:
//   node bundle.mjs <esbuild|webpack> main.js out.cjs
import { createRequire } from 'node:module';
import { basename, dirname, resolve } from 'node:path';

const [bundler, entry, out] = process.argv.slice(2);
const require = createRequire(import.meta.url);

/** Packages that NestJS loads only if they are installed, and packages that read files from their own folders. */
const EXTERNAL =
  /^(@nestjs\/(microservices|websockets)|class-(transformer|validator)|@fastify\/(multipart|static|view)|@electric-sql)(\/|$)/;

async function esbuild() {
  const plugin = {
    name: 'external',
    setup: (build) => build.onResolve({ filter: EXTERNAL }, ({ path }) => ({ path, external: true })),
  };
  const options = {
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node20',
    keepNames: true,
    logLevel: 'error',
  };
  await require('esbuild').build({ ...options, entryPoints: [entry], outfile: out, plugins: [plugin] });
}

function webpack() {
  const config = {
    mode: 'production',
    target: 'node20',
    context: process.cwd(),
    entry: resolve(entry),
    output: { path: resolve(dirname(out)), filename: basename(out) },
    // NestJS uses the names of classes.
    optimization: { minimize: false },
    externals: ({ request }, callback) => (EXTERNAL.test(request) ? callback(null, `commonjs ${request}`) : callback()),
  };
  return new Promise((done, fail) => {
    require('webpack')(config, (error, stats) => {
      if (error ?? stats.hasErrors()) fail(error ?? new Error(stats.toString({ all: false, errors: true })));
      else done();
    });
  });
}

await { esbuild, webpack }[bundler]();
