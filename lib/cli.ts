#!/usr/bin/env node
// The command `nestjs-redis-lock`: see docs/cli.md.
import { createRequire } from 'node:module';
import { EXIT } from './cli/command-error.js';
import { runCommandLine } from './cli/run-command-line.js';

// If the process ends before the command has settled, the exit code is not 0.
process.exitCode = EXIT.failure;
void runCommandLine(process.argv.slice(2), process.env, version).then((exitCode) => {
  process.exitCode = exitCode;
});

/** The path of the package. This file is lib/cli.ts in the sources, and dist/esm/cli.js in the package. */
function version(): string {
  const require = createRequire(import.meta.url);
  const depth = import.meta.url.endsWith('.ts') ? '..' : '../..';
  return require(`${depth}/package.json`).version;
}
