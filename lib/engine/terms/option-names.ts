import { LockConfigurationError } from '../errors.js';

/**
 * Refuses options that do not exist, because a misspelt option must not be ignored.
 *
 * @param what the name of the call in errors: `list()`
 * @throws LockConfigurationError naming the unknown option, and those that exist
 */
export function checkOptionNames(options: object, names: readonly string[], what: string): void {
  if (typeof options !== 'object' || options === null)
    throw new LockConfigurationError(`${what}: the options must be an object, but they are ${String(options)}`);
  for (const option of Object.keys(options)) {
    if (!names.includes(option))
      throw new LockConfigurationError(`${what}: there is no option '${option}'; there are ${names.join(', ')}`);
  }
}
