import type { LockService } from '../../service/lock-service.js';
import type { CommandLine } from '../command-line.js';
import type { Output } from '../output.js';

export interface CommandContext extends CommandLine {
  readonly locks: LockService;
  readonly output: Output;
}

/** @returns the exit code of the program */
export type Command = (context: CommandContext) => Promise<number>;
