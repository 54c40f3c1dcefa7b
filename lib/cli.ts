#!/usr/bin/env node
// The command `nestjs-redis-lock`: see docs/cli.md.
import { runCommandLine } from './cli/run-command-line.js';

void runCommandLine(process.argv.slice(2), process.env).then((exitCode) => {
  process.exitCode = exitCode;
});
