/** A value of Lua, as translated scripts have it. `nil` is undefined, and strings hold one byte a character. */
export type LuaValue = undefined | boolean | number | string | LuaTable | LuaFunction | object;

/** Returns one value, or several as an array. */
// biome-ignore lint/suspicious/noExplicitAny: each function takes what the script passes
export type LuaFunction = (...values: any[]) => LuaValue | readonly LuaValue[];

/** A table: a list from 1 on, and fields. */
export class LuaTable {
  readonly list: LuaValue[];
  /** Most tables are lists, which never need one. */
  private map: Map<LuaValue, LuaValue> | undefined;

  constructor(list: LuaValue[] = [], fields?: Iterable<readonly [LuaValue, LuaValue]>) {
    this.list = list;
    this.map = fields && new Map(fields);
    this.dropNilAtEnd();
  }

  get fields(): Map<LuaValue, LuaValue> {
    this.map ??= new Map();
    return this.map;
  }

  /** The value of `#`. A list with a gap has several lengths in Lua, so a script must not ask for it. */
  get length(): number {
    if (this.list.includes(undefined)) throw new Error('The length of a list with a gap is undefined in Lua');
    return this.list.length;
  }

  get(key: LuaValue): LuaValue {
    return this.has(key) ? this.list[(key as number) - 1] : this.map?.get(key);
  }

  set(key: LuaValue, value: LuaValue): void {
    const { list, map } = this;
    if (this.has(key)) {
      list[(key as number) - 1] = value;
      this.dropNilAtEnd();
    } else if (value === undefined) map?.delete(key);
    else if (key === list.length + 1) {
      list.push(value);
      this.moveFieldsToList();
    } else this.fields.set(key, value);
  }

  private has(key: LuaValue): boolean {
    return typeof key === 'number' && key >= 1 && key <= this.list.length && Number.isInteger(key);
  }

  private dropNilAtEnd(): void {
    const { list } = this;
    while (list.length > 0 && list[list.length - 1] === undefined) list.pop();
  }

  private moveFieldsToList(): void {
    const { list, map } = this;
    while (map !== undefined && map.size > 0) {
      const next = map.get(list.length + 1);
      if (next === undefined) return;
      map.delete(list.length + 1);
      list.push(next);
    }
  }
}

/** What `error()` threw, or Redis' answer to a command of a script: a text, or a table with the field `err`. */
export class LuaError extends Error {
  constructor(readonly value: LuaValue) {
    super(textOfError(value));
  }
}

function textOfError(value: LuaValue): string {
  const text = value instanceof LuaTable ? value.get('err') : value;
  return typeof text === 'string' ? text : 'a script threw an error without a text';
}
