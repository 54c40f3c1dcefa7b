import { createLockService } from '../service/create-lock-service.js';
import { CommandError, EXIT, toCommandError } from './command-error.js';
import { asksForJson, type CommandLine, parseCommandLine, type Verb } from './command-line.js';
import type { Command } from './commands/command.js';
import { inspect } from './commands/inspect.js';
import { listClients } from './commands/list-clients.js';
import { listLocks } from './commands/list-locks.js';
import { checkRelease, release } from './commands/release.js';
import { watch } from './commands/watch.js';
import { checkCluster } from './doctor/cluster-check.js';
import { runDoctor } from './doctor/run-doctor.js';
import { Output } from './output.js';
import { type OpenRedis, openRedis } from './redis/open-redis.js';
import { type RedisPlace, redisPlace } from './redis/redis-place.js';
import { noteReplica } from './redis/wrong-server.js';
import { USAGE } from './usage.js';

const COMMANDS: Record<Exclude<Verb, 'doctor'>, Command> = {
  ls: listLocks,
  inspect,
  watch,
  clients: listClients,
  release,
};

/** Generous, because this tool is used when Redis is in trouble. */
const COMMAND_TIMEOUT = 5_000;

/**
 * @param version returns the version of the package
 * @returns the exit code of the program
 */
export async function runCommandLine(
  args: readonly string[],
  environment: NodeJS.ProcessEnv,
  version: () => string,
): Promise<number> {
  const output = new Output(asksForJson(args));
  const settled = reportUnhandled(output);
  try {
    return await output.end(await run(args, environment, version, output));
  } catch (error) {
    return await output.end(fail(toCommandError(error), output));
  } finally {
    settled();
  }
}

async function run(
  args: readonly string[],
  environment: NodeJS.ProcessEnv,
  version: () => string,
  output: Output,
): Promise<number> {
  const line = parseCommandLine(args);
  if (typeof line === 'string') {
    output.print(line === 'help' ? USAGE : `${version()}\n`);
    return EXIT.ok;
  }
  checkRelease(line);
  const place = redisPlace(line.options, environment);
  if (line.verb === 'doctor') return await runDoctor(place, line.options.prefix ?? 'lock:', output);
  return await runCommand(COMMANDS[line.verb], line, place, output);
}

/**
 * Reports errors that no promise reports: uncaught errors, and the case that the event loop runs out of work before the
 * command has settled.
 *
 * @returns a function to call when the command has settled
 */
function reportUnhandled(output: Output): () => void {
  const uncaught = async (error: unknown) => process.exit(await output.end(fail(toCommandError(error), output)));
  const unsettled = async () => {
    const message = 'The program ended without an answer, so the result is unknown. This is a bug in nestjs-redis-lock';
    process.exit(await output.end(fail(new CommandError('failure', message), output)));
  };
  process.on('uncaughtException', uncaught).once('beforeExit', unsettled);
  return () => process.off('uncaughtException', uncaught).off('beforeExit', unsettled);
}

async function runCommand(command: Command, line: CommandLine, place: RedisPlace, output: Output): Promise<number> {
  const redis = await openRedis(place);
  try {
    noteReplica(redis.replicaOf, line, place, output);
    const locks = createLockService({
      connection: redis.connection,
      keyPrefix: line.options.prefix,
      applicationName: 'nestjs-redis-lock',
      commandTimeout: COMMAND_TIMEOUT,
      logger: { warn: () => {}, error: () => {} }, // failures are thrown anyway
    });
    try {
      return await command({ ...line, locks, output });
    } catch (error) {
      throw await withClusterState(toCommandError(error), redis, place);
    } finally {
      await locks.close();
    }
  } finally {
    await redis.close();
  }
}

/** A cluster that is down refuses commands. This adds the missing slots and nodes to the error. */
async function withClusterState(
  error: CommandError,
  redis: OpenRedis,
  { isCluster }: RedisPlace,
): Promise<CommandError> {
  if (!isCluster || error.kind !== 'unavailable') return error;
  const finding = await checkCluster(redis.server).catch(() => undefined);
  if (finding?.status !== 'wrong') return error;
  return new CommandError(
    'unavailable',
    `${error.message.replace(/\.+$/, '')}. ${finding.message}. 'doctor --cluster' shows which slots and nodes are missing`,
    { cause: error.cause },
  );
}

function fail(error: CommandError, output: Output): number {
  output.error(error);
  const { stack } = (error.cause ?? {}) as Error;
  if (error.kind === 'failure' && stack !== undefined) process.stderr.write(`${stack}\n`);
  return EXIT[error.kind];
}
