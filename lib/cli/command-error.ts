/** The exit codes of the program. docs/cli.md lists them: scripts rely on them. */
export const EXIT = {
  ok: 0,
  /** An unexpected error. */
  failure: 1,
  /** The command line is wrong. Nothing was read or changed. */
  usage: 2,
  /** The lock is not held by anybody. */
  notLocked: 3,
  /** Redis cannot be reached, refuses, or does not answer in time. */
  unavailable: 4,
  /** `doctor` has found a problem. */
  unfit: 5,
} as const;

export type ErrorKind = Exclude<keyof typeof EXIT, 'ok'>;

/** Ends the program with a message. */
export class CommandError extends Error {
  override readonly name = 'CommandError';

  constructor(
    readonly kind: ErrorKind,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

export function usageError(message: string): CommandError {
  return new CommandError('usage', `${message}. 'nestjs-redis-lock --help' shows how it is used`);
}

/** Turns the error of a command into the message for the user. */
export function toCommandError(error: unknown): CommandError {
  if (error instanceof CommandError) return error;
  const { name, message } = error as Error;
  if (name === 'LockUnavailableError') return new CommandError('unavailable', message, { cause: error });
  if (name === 'LockConfigurationError' || name === 'LockKeyError')
    return new CommandError('usage', message, { cause: error });
  return new CommandError('failure', message, { cause: error });
}
