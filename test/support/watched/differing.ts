/** The same object, except for some of its members. */
export function differing<T extends object>(whole: T, differences: Partial<T>): T {
  return new Proxy(whole, {
    get(target, property) {
      if (Object.hasOwn(differences, property)) return differences[property as keyof T];
      const value = Reflect.get(target, property);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
