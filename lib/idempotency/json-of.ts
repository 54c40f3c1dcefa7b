/** A value as JSON, or why it is none. */
export type AsJson =
  | { readonly text: string; readonly problem?: undefined }
  | { readonly text?: undefined; readonly problem: string; readonly hasInstance?: boolean };

/**
 * Converts a value to JSON. An object of a class is refused, unless its `toJSON` gives a string or a
 * number, as that of a Date does: the class may have decorators that say which of its properties are secret.
 */
export function jsonOf(value: unknown): AsJson {
  let instance: string | undefined;
  function refuseInstance(this: Record<string, unknown>, key: string, json: unknown): unknown {
    if (typeof json !== 'object' || json === null) return json;
    const foreign = [this[key], json].find((value) => !isPlain(value));
    if (foreign === undefined) return json;
    instance ??= `${key === '' ? 'it' : `'${key}'`} is an instance of the class ${classOf(foreign)}`;
    return undefined;
  }
  try {
    const text: string | undefined = JSON.stringify(value, refuseInstance);
    if (instance !== undefined) return { problem: instance, hasInstance: true };
    return text === undefined ? { problem: `it is a ${typeof value}` } : { text };
  } catch (error) {
    return { problem: error instanceof Error ? error.message.split('\n')[0] : String(error) };
  }
}

/** The prototype may be that of another realm, as in Jest. */
function isPlain(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return true;
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function classOf(value: unknown): string {
  return (value as object).constructor?.name || 'without a name';
}
