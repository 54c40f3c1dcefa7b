/** The names of classes with decorated methods, as they were when the classes were defined. */
const definedNames = new WeakMap<object, unknown>();

/** What `mixin()` of NestJS replaces the name of a class with: 21 random hexadecimal digits. */
const RANDOM = /^[0-9a-f]{21}$/;

/** Called by decorators of methods, which run before `mixin()` can rename the class. */
export function keepClassName(type: { readonly name: unknown }): void {
  if (!definedNames.has(type)) definedNames.set(type, type.name);
}

/**
 * The name of the instance's class, for `#<class>`. It has to be the same in every process, but `mixin()` of NestJS
 * gives a class a random name. Then this is the name that the class had when it was defined. It is known if the class
 * itself has decorated methods. Otherwise the name of the nearest class that it extends is used.
 */
export function classNameOf(instance: object): unknown {
  for (let type = instance.constructor; typeof type === 'function'; type = Object.getPrototypeOf(type)) {
    const name = definedNames.has(type) ? definedNames.get(type) : type.name;
    if (typeof name !== 'string' || !RANDOM.test(name)) return name;
  }
  return instance.constructor.name;
}
