import { createHash } from 'node:crypto';
import { numberInText, numberOf, toLong } from './lua-number.js';
import { luaPattern } from './lua-pattern.js';
import { LuaError, type LuaFunction, LuaTable, type LuaValue } from './lua-table.js';

/** What a script may ask of its server. */
export interface ScriptHost {
  /** Executes a command. @throws LuaError with Redis' error */
  call(words: readonly LuaValue[]): LuaValue;
  /** Redis' version, as `REDIS_VERSION_NUM` has it. */
  readonly version: number;
  /** How this server prints its tables, such as `table: 0x7f01`. Each server has its own. */
  readonly address: string;
}

/** Lua's library, as far as scripts use it, and what their operators do. Translated scripts call it `lua`. */
export class LuaLibrary {
  KEYS = new LuaTable();
  ARGV = new LuaTable();
  readonly redis: LuaTable &
    Record<'call' | 'pcall' | 'error_reply' | 'sha1hex', LuaFunction> & {
      REDIS_VERSION_NUM: number;
    };
  readonly string = { byte, char, find, format: this.format.bind(this), gsub: this.gsub.bind(this), match, sub };
  readonly table = { concat, insert };
  readonly math = {
    ceil: (value: LuaValue) => Math.ceil(num(value)),
    floor: (value: LuaValue) => Math.floor(num(value)),
    max: (...values: LuaValue[]) => Math.max(...values.map(num)),
    min: (...values: LuaValue[]) => Math.min(...values.map(num)),
  };
  readonly cjson = { encode: (value: LuaValue) => encode(value) };
  readonly num = num;
  readonly text = text;
  readonly type = typeOf;

  constructor(private readonly host: ScriptHost) {
    this.redis = Object.assign(new LuaTable(), {
      call: (...words: LuaValue[]) => host.call(words),
      pcall: (...words: LuaValue[]) => errorAsValue(() => host.call(words)),
      error_reply: (message: LuaValue) => new LuaTable([], [['err', text(message)]]),
      sha1hex: (value: LuaValue) => createHash('sha1').update(text(value), 'latin1').digest('hex'),
      REDIS_VERSION_NUM: host.version,
    });
  }

  newTable(list: LuaValue[], fields?: Iterable<readonly [LuaValue, LuaValue]>): LuaTable {
    return new LuaTable(list, fields);
  }

  /** The values of a call, as an array. */
  all(returned: LuaValue | readonly LuaValue[]): readonly LuaValue[] {
    return Array.isArray(returned) ? returned : [returned];
  }

  /** The first value of a call. */
  first(returned: LuaValue | readonly LuaValue[]): LuaValue {
    return Array.isArray(returned) ? returned[0] : returned;
  }

  isTrue(value: LuaValue): boolean {
    return value !== undefined && value !== false;
  }

  index(base: LuaValue, key: LuaValue): LuaValue {
    return base instanceof LuaTable ? base.get(key) : raise(`attempt to index a ${typeOf(base)} value`);
  }

  length(value: LuaValue): number {
    return value instanceof LuaTable ? value.length : text(value).length;
  }

  isLess(left: LuaValue, right: LuaValue): boolean {
    refuseIncomparable(left, right);
    return (left as string) < (right as string);
  }

  isAtMost(left: LuaValue, right: LuaValue): boolean {
    refuseIncomparable(left, right);
    return (left as string) <= (right as string);
  }

  mod(left: LuaValue, right: LuaValue): number {
    const [dividend, divisor] = [num(left), num(right)];
    return dividend - Math.floor(dividend / divisor) * divisor;
  }

  tonumber(value: LuaValue, base = 10): number | undefined {
    if (base === 10) return toNumber(value);
    const digits = text(value);
    const number = Number.parseInt(digits, base);
    return number.toString(base) === digits.toLowerCase().replace(/^0+(?=.)/, '') ? number : undefined;
  }

  tostring(value: LuaValue): string {
    if (typeof value === 'string' || typeof value === 'number') return text(value);
    if (value === undefined) return 'nil';
    return value instanceof LuaTable ? this.host.address : String(value);
  }

  *ipairs(table: LuaTable): Iterable<readonly [number, LuaValue]> {
    for (let index = 1; ; index++) {
      const value = table.get(index);
      if (value === undefined) return;
      yield [index, value];
    }
  }

  pairs(table: LuaTable): Iterable<readonly [LuaValue, LuaValue]> {
    const listed = table.list.map((value, index): [LuaValue, LuaValue] => [index + 1, value]);
    return [...listed.filter(([, value]) => value !== undefined), ...table.fields];
  }

  unpack(table: LuaTable, first = 1, last = table.length): readonly LuaValue[] {
    const values: LuaValue[] = [];
    for (let index = first; index <= last; index++) values.push(table.get(index));
    return values;
  }

  error(value: LuaValue): never {
    throw new LuaError(value);
  }

  pcall(work: LuaFunction, ...values: LuaValue[]): readonly LuaValue[] {
    try {
      return [true, ...this.all(work(...values))];
    } catch (error) {
      if (error instanceof LuaError) return [false, error.value];
      throw error;
    }
  }

  private format(pattern: string, ...values: LuaValue[]): string {
    let next = 0;
    return pattern.replace(/%(%|[^%a-zA-Z]*[a-zA-Z])/g, (_text, kind: string) => {
      if (kind === '%') return '%';
      if (next === values.length) return raise(`bad argument #${next + 2} to 'format' (no value)`);
      const value = values[next++];
      if (kind === 's') return this.tostring(value);
      if (kind === 'd') return integerText(toLong(num(value)));
      if (kind === '.0f') return integerText(roundHalfToEven(num(value)));
      if (kind === '02x') return Math.trunc(num(value)).toString(16).padStart(2, '0');
      throw new Error(`string.format: %${kind} is not supported in this process`);
    });
  }

  private gsub(value: LuaValue, pattern: string, by: LuaValue): readonly [string, number] {
    let count = 0;
    const replaced = text(value).replace(luaPattern(pattern, 'gs'), (...match: unknown[]) => {
      count++;
      if (typeof by === 'function') {
        const captures = match.slice(1, -2) as string[];
        const own = this.first((by as LuaFunction)(...(captures.length > 0 ? captures : [match[0] as string])));
        return this.isTrue(own) ? text(own) : (match[0] as string);
      }
      const replacement = text(by);
      if (replacement.includes('%'))
        throw new Error('string.gsub: % in a replacement is not supported in this process');
      return replacement;
    });
    return [replaced, count];
  }
}

function raise(message: string): never {
  throw new LuaError(message);
}

function typeOf(value: LuaValue): string {
  if (value === undefined) return 'nil';
  return value instanceof LuaTable ? 'table' : typeof value;
}

function toNumber(value: LuaValue): number | undefined {
  if (typeof value === 'number') return value;
  return typeof value === 'string' ? numberOf(value) : undefined;
}

function num(value: LuaValue): number {
  if (typeof value === 'number') return value;
  return toNumber(value) ?? raise(`attempt to perform arithmetic on a ${typeOf(value)} value`);
}

function text(value: LuaValue): string {
  if (typeof value === 'string') return value;
  return typeof value === 'number' ? numberInText(value) : raise(`attempt to concatenate a ${typeOf(value)} value`);
}

/** Two numbers, or two strings, can be compared. */
function refuseIncomparable(left: LuaValue, right: LuaValue): void {
  if (typeof left === typeof right && (typeof left === 'number' || typeof left === 'string')) return;
  const [one, other] = [typeOf(left), typeOf(right)];
  raise(one === other ? `attempt to compare two ${one} values` : `attempt to compare ${one} with ${other}`);
}

/** The table of an error, where `redis.pcall` gives it back. */
function errorAsValue(work: () => LuaValue): LuaValue {
  try {
    return work();
  } catch (error) {
    if (error instanceof LuaError) return error.value;
    throw error;
  }
}

function byte(value: LuaValue, at = 1): number | undefined {
  const code = text(value).charCodeAt(at - 1);
  return Number.isNaN(code) ? undefined : code;
}

function char(...codes: number[]): string {
  return String.fromCharCode(...codes);
}

function sub(value: LuaValue, from: number, to = -1): string {
  const whole = text(value);
  const at = (index: number) => (index < 0 ? Math.max(whole.length + index + 1, 0) : index);
  return whole.slice(Math.max(at(from), 1) - 1, Math.max(at(to), 0));
}

function find(value: LuaValue, pattern: string, from = 1, plain = false): readonly LuaValue[] {
  const whole = text(value);
  if (plain) {
    const at = whole.indexOf(pattern, from - 1);
    return at < 0 ? [undefined] : [at + 1, at + pattern.length];
  }
  if (from !== 1) throw new Error('string.find: a pattern from a position is not supported in this process');
  const found = luaPattern(pattern).exec(whole);
  return found === null ? [undefined] : [found.index + 1, found.index + found[0].length, ...found.slice(1)];
}

function match(value: LuaValue, pattern: string): readonly LuaValue[] {
  const found = luaPattern(pattern).exec(text(value));
  if (found === null) return [undefined];
  return found.length > 1 ? found.slice(1) : [found[0]];
}

function concat(table: LuaTable, separator = ''): string {
  return table.list.map(text).join(separator);
}

function insert(table: LuaTable, value: LuaValue): void {
  table.set(table.length + 1, value);
}

function integerText(value: number): string {
  if (!Number.isFinite(value)) return numberInText(value);
  return Object.is(value, -0) ? '-0' : BigInt(value).toString();
}

function roundHalfToEven(value: number): number {
  const below = Math.floor(value);
  const rest = value - below;
  if (rest === 0.5) return below % 2 === 0 ? below : below + 1;
  return rest < 0.5 ? below : below + 1;
}

/** As lua-cjson writes it, which escapes more than JSON requires. */
function encode(value: LuaValue): string {
  return JSON.stringify(plain(value)).replaceAll('/', '\\/').replaceAll('\x7f', '\\u007f');
}

function plain(value: LuaValue): unknown {
  if (!(value instanceof LuaTable)) return value;
  if (value.fields.size === 0) return value.list.length === 0 ? {} : value.list.map(plain);
  return Object.fromEntries([...value.fields].map(([name, field]) => [name, plain(field)]));
}
