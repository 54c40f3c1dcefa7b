import { type InspectOptions, inspect } from 'node:util';

/**
 * Decides what logs show of the instances of a class, by `util.inspect` (`console`, the logger of NestJS) and as JSON.
 * Otherwise, they would show everything that an instance refers to: megabytes, with the password of the connection.
 *
 * @param show returns plain values
 * @publicApi
 */
export function printsAs<T extends object>(
  type: abstract new (...args: never[]) => T,
  show: (instance: T) => object,
): void {
  const methods = {
    toJSON(this: T): object {
      return show(this);
    },
    [inspect.custom](this: T, _depth: number, options: InspectOptions): string {
      return `${this.constructor.name} ${inspect(show(this), { ...options, customInspect: false })}`;
    },
  };
  for (const key of Reflect.ownKeys(methods)) {
    const value = methods[key as keyof typeof methods];
    Object.defineProperty(type.prototype, key, { value, configurable: true, writable: true });
  }
}
