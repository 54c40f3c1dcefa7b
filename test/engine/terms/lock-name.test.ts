import { LockKeyError } from '../../../lib/engine/errors.js';
import {
  bracesPair,
  prefixProblem,
  quoted,
  refuseSuspiciousName,
  toKey,
  toLockName,
  toLockNames,
  toWanted,
} from '../../../lib/engine/terms/lock-name.js';

const WHAT = 'acquire()';

/** The error that `call` throws. */
function keyErrorOf(call: () => unknown): LockKeyError {
  try {
    call();
  } catch (error) {
    expect(error).toBeInstanceOf(LockKeyError);
    return error as LockKeyError;
  }
  throw new Error('it was not refused');
}

describe('the braces of a lock name', () => {
  it.each(['order', '{order}', 'order:{5}', '{a}:{b}', '{a{b}}'])('pair in %j', (name) => {
    expect(bracesPair(name)).toBe(true);
  });

  it.each(['{', '}', '{}', '{order', 'order}', 'or}der', '}{', 'a{}', '{a}}', '{a}:{b', '{a{}}'])(
    'do not pair in %j',
    (name) => {
      expect(bracesPair(name)).toBe(false);
    },
  );
});

describe('a lock name', () => {
  it.each([
    ['a', 'a'],
    ['of 1,024 bytes', 'x'.repeat(1_024)],
    ['of 1,024 bytes in other characters', `x${'€'.repeat(341)}`],
    ['with an emoji', 'order:😀'],
  ])('is accepted as it is: %s', (_, name) => {
    expect(toLockName(name, WHAT)).toBe(name);
  });

  it.each([
    [undefined, 'undefined'],
    [null, 'null'],
    [42, '42'],
    [true, 'true'],
    [['a'], 'an array inside a list'],
    [{}, 'object Object'],
    [new Map(), 'object Map'],
    [Object.create(null), 'object'],
    [class Order {}, 'function Function'],
  ])('is refused with its kind if it is no string: %p', (value, kind) => {
    const error = keyErrorOf(() => toLockName(value, WHAT));
    expect(error.message).toBe(`acquire(): a lock name must be a string, but it is ${kind}`);
    expect(error.lockName).toBe('');
  });

  it('is refused if it is empty', () => {
    expect(keyErrorOf(() => toLockName('', WHAT))).toMatchObject({
      message: 'acquire(): the lock name is empty',
      lockName: '',
    });
  });

  it.each([
    ['1,025 characters of one byte', 'x'.repeat(1_025), 1_025],
    ['342 characters of three bytes', '€'.repeat(342), 1_026],
  ])('is refused if it is too long, and the error shows only its beginning: %s', (_, name, bytes) => {
    const error = keyErrorOf(() => toLockName(name, WHAT));
    expect(error.message).toContain(`the lock name '${name.slice(0, 40)}…' has ${bytes} bytes; 1024 is the limit`);
    expect(error.lockName).toBe(name.slice(0, 40));
  });

  it('is refused with its name if its braces do not pair, or if it has half a character', () => {
    for (const name of ['order:{', 'order:\ud83d']) {
      const error = keyErrorOf(() => toLockName(name, WHAT));
      expect(error.lockName).toBe(name);
      expect(error.message).toMatch(/^acquire\(\): the lock name /);
    }
  });

  it('may contain a word that stands for a missing value, but may not be one, nor have one as a part', () => {
    for (const name of ['nullable', 'annull', 'a:Null', 'a:undefined-7', 'NaN1:x', 'null'.repeat(2)])
      expect(() => refuseSuspiciousName(name, WHAT)).not.toThrow();
    for (const [name, part] of [
      ['undefined', 'undefined'],
      ['null:7', 'null'],
      ['a:NaN:b', 'NaN'],
      ['user:[object Object]', '[object Object]'],
      ['{null}', 'null'],
      ['a:{b:undefined}', 'undefined'],
    ]) {
      const error = keyErrorOf(() => refuseSuspiciousName(name, WHAT));
      expect(error.message).toContain(`acquire(): the lock name '${name}' has the part '${part}'`);
      expect(error.lockName).toBe(name);
    }
  });
});

describe('the key of a lock', () => {
  it('begins with the prefix of its service', () => {
    expect(toKey('lock:', 'order', WHAT)).toBe('lock:order');
  });

  it('may have 1,024 bytes, and no more', () => {
    const name = 'x'.repeat(1_000);
    expect(toKey('p'.repeat(24), name, WHAT)).toHaveLength(1_024);
    const error = keyErrorOf(() => toKey('p'.repeat(25), name, WHAT));
    expect(error.message).toContain('has 1025 bytes');
  });

  it.each(['{order}', '{order:5}'])('is not %j, which shares its line with another lock', (name) => {
    const error = keyErrorOf(() => toKey('', name, WHAT));
    expect(error.message).toContain(`${WHAT}: the lock name '${name}' `);
    expect(error.message).toContain(`'${name.slice(1, -1)}'`);
    expect(toKey('lock:', name, WHAT)).toBe(`lock:${name}`);
  });

  it.each(['order', '{order}:5', '5:{order}', '{a}:{b}', '{a{b}}', '{{a}}'])('may be %j', (name) => {
    expect(toKey('', name, WHAT)).toBe(name);
  });

  it('is measured in bytes, with the prefix', () => {
    expect(toKey('€', 'x'.repeat(1_021), WHAT)).toHaveLength(1_022);
    expect(keyErrorOf(() => toKey('€', 'x'.repeat(1_022), WHAT)).message).toContain('has 1025 bytes');
  });
});

describe('a prefix of keys', () => {
  it.each(['', 'lock:', '{shop}:', 'x'.repeat(512), '€'.repeat(170), 'nestjs_redis:', 'my:nestjs_redis_lock_'])(
    'can be %j',
    (prefix) => {
      expect(prefixProblem(prefix)).toBeUndefined();
    },
  );

  it.each([
    [5, 'must be a string whose braces are balanced'],
    [undefined, 'must be a string whose braces are balanced'],
    ['{shop', 'must be a string whose braces are balanced'],
    ['shop\ud83d', 'has half a character (a lone surrogate)'],
    ['nestjs_redis_lock_', "begins with 'nestjs_redis_lock_'"],
    ['nestjs_redis_lock_mine:', "begins with 'nestjs_redis_lock_'"],
    ['x'.repeat(513), 'has 513 bytes; it may have at most 512'],
    ['€'.repeat(171), 'has 513 bytes; it may have at most 512'],
  ])('cannot be %j', (prefix, problem) => {
    expect(prefixProblem(prefix)).toContain(problem);
  });
});

describe('a list of lock names', () => {
  it('is sorted, and has each name once', () => {
    const names = ['b', 'a', 'c', 'a'];
    expect(toLockNames(names, WHAT)).toEqual(['a', 'b', 'c']);
    expect(names).toEqual(['b', 'a', 'c', 'a']);
  });

  it('is refused if it is empty', () => {
    expect(keyErrorOf(() => toLockNames([], WHAT)).message).toContain('acquire(): the list of lock names is empty');
  });

  it('is refused if it has a hole or a bad name', () => {
    for (const names of [new Array(1), ['a', 7], ['a', '']]) keyErrorOf(() => toLockNames(names, WHAT));
  });

  it('may have 10,000 different names, and no more', () => {
    const names = Array.from({ length: 10_000 }, (_, n) => `a:${n}`);
    expect(toLockNames([...names, 'a:0'], WHAT)).toHaveLength(10_000);
    const error = keyErrorOf(() => toLockNames([...names, 'b'], WHAT));
    expect(error.message).toContain('the list has 10001 lock names; 10000 is the limit');
  });
});

describe('what a caller wants to lock', () => {
  it('is one name, which is checked later, or a checked list', () => {
    expect(toWanted('', WHAT)).toBe('');
    expect(toWanted(['b', 'a'], WHAT)).toEqual(['a', 'b']);
    expect(keyErrorOf(() => toWanted(7 as never, WHAT)).message).toContain('it is 7');
    keyErrorOf(() => toWanted([], WHAT));
  });

  it('is quoted in errors, at most 80 characters of it', () => {
    expect(quoted('order')).toBe("'order'");
    expect(quoted(['a', 'b'])).toBe("'a', 'b'");
    expect(quoted('x'.repeat(81))).toBe(`'${'x'.repeat(80)}'`);
  });
});
