import { createLockService } from '../service/create-lock-service.js';
import { type CommandError, EXIT, toCommandError } from './command-error.js';
import { asksForJson, type CommandLine, parseCommandLine, type Verb } from './command-line.js';
import type { Command } from './commands/command.js';
import { inspect } from './commands/inspect.js';
import { listClients } from './commands/list-clients.js';
import { listLocks } from './commands/list-locks.js';
import { checkRelease, release } from './commands/release.js';
import { watch } from './commands/watch.js';
import { runDoctor } from './doctor/run-doctor.js';
import { Output } from './output.js';
import { openRedis } from './redis/open-redis.js';
import { type RedisPlace, redisPlace } from './redis/redis-place.js';
import { USAGE } from './usage.js';

const COMMANDS: Record<Exclude<Verb, 'doctor'>, Command> = {
  ls: listLocks,
  inspect,
  watch,
  clients: listClients,
  release,
};

/** A Redis that is in trouble is the one that is looked at: it may take its time. */
const COMMAND_TIMEOUT = 5_000;

/** @returns what the program is to end with */
export async function runCommandLine(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> {
  const output = new Output(asksForJson(args));
  try {
    const line = parseCommandLine(args);
    if (line === undefined) {
      process.stdout.write(USAGE);
      return EXIT.ok;
    }
    checkRelease(line);
    const place = redisPlace(line.options, environment);
    if (line.verb === 'doctor') return await runDoctor(place, line.options.prefix ?? 'lock:', output);
    return await runCommand(COMMANDS[line.verb], line, place, output);
  } catch (error) {
    return fail(toCommandError(error), output);
  }
}

async function runCommand(command: Command, line: CommandLine, place: RedisPlace, output: Output): Promise<number> {
  const redis = await openRedis(place);
  try {
    const locks = createLockService({
      connection: () => redis.client,
      keyPrefix: line.options.prefix,
      applicationName: 'nestjs-redis-lock',
      commandTimeout: COMMAND_TIMEOUT,
      logger: { warn: () => {}, error: () => {} }, // what fails is thrown, too
    });
    try {
      return await command({ ...line, locks, output });
    } finally {
      await locks.close();
    }
  } finally {
    redis.close();
  }
}

function fail(error: CommandError, output: Output): number {
  output.error(error);
  if (error.kind === 'failure') process.stderr.write(`${(error.cause as Error | undefined)?.stack}\n`);
  return EXIT[error.kind];
}
