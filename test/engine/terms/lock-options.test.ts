import { LockConfigurationError } from '../../../lib/engine/errors.js';
import { FOREVER, MAX_TIMEOUT, type Milliseconds } from '../../../lib/engine/terms/duration.js';
import {
  type AcquisitionTerms,
  checkNewest,
  DEFAULT_TERMS,
  type RunOptions,
  toAdoptTerms,
  toPermits,
  toRunTerms,
} from '../../../lib/engine/terms/lock-options.js';
import { checkOptions, oneOf, TRUE_OR_FALSE, wholeNumber } from '../../../lib/engine/terms/option-table.js';

const ms = (time: number) => time as Milliseconds;

/** None of them is the default of the library. */
const DEFAULTS: AcquisitionTerms = {
  ...DEFAULT_TERMS,
  type: 'fair',
  permits: 7,
  holdAtMost: ms(70_000),
  group: 'orders',
  method: 'Orders.pay',
  skips: true,
  dropsBusy: true,
  reentry: false,
  tentative: true,
  waitTime: ms(5_000),
  outageTimeout: ms(6_000),
  leaseTime: ms(7_000),
  onLost: 'warn',
  release: 'background',
  choseWaitTime: false,
};
const termsOf = (options: object, defaults: Partial<AcquisitionTerms> = {}) =>
  toRunTerms(options as RunOptions, { ...DEFAULTS, ...defaults }, 'acquire()');

/** The message of the LockConfigurationError that `call` throws. */
function refusal(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    expect(error).toBeInstanceOf(LockConfigurationError);
    return (error as Error).message;
  }
  throw new Error('it was not refused');
}

describe('the options of an acquisition', () => {
  it('have the defaults that are given', () => {
    const { dropsBusy, ...others } = DEFAULTS;
    expect(termsOf({})).toEqual({ ...others, dropsBusy, fixed: false, choseWaitTime: false, signal: undefined });
  });

  it('come before the defaults', () => {
    const { signal } = new AbortController();
    const options = {
      waitTime: '1s',
      outageTimeout: '2s',
      leaseTime: '3s',
      type: 'read',
      signal,
      onLost: 'throw',
      release: 'confirmed',
      reentry: true,
      holdAtMost: '4s',
      group: 'stock',
    };
    expect(termsOf(options)).toEqual({
      ...DEFAULTS,
      ...options,
      waitTime: 1_000,
      choseWaitTime: true,
      outageTimeout: 2_000,
      leaseTime: 3_000,
      fixed: true,
      holdAtMost: 4_000,
    });
  });

  it('may let a caller wait forever, for the lock and for the backend', () => {
    const { waitTime, outageTimeout } = termsOf({ waitTime: Infinity, outageTimeout: Infinity });
    expect([waitTime, outageTimeout]).toEqual([FOREVER, FOREVER]);
  });

  it('may be made without a service, with the defaults of the library', () => {
    const times = { waitTime: FOREVER, outageTimeout: ms(1), leaseTime: ms(1) };
    const terms = toRunTerms({}, { ...DEFAULT_TERMS, ...times, onLost: 'throw', release: 'confirmed' }, 'acquire()');
    expect(terms).toMatchObject({
      type: 'reentrant',
      permits: undefined,
      newest: false,
      holdAtMost: FOREVER,
      group: '',
      method: '',
      skips: false,
      dropsBusy: false,
      reentry: true,
      tentative: false,
    });
  });

  it.each([
    ['an unknown option', { waitime: 5 }, "there is no option 'waitime'; did you mean 'waitTime'?"],
    [
      'an unknown type',
      { type: 'mutex' },
      "type is 'mutex'; it must be 'reentrant', 'fair', 'read', 'write' or 'fenced'",
    ],
    ['a type that has options of its own', { type: 'permits' }, "type is 'permits'"],
    ['no type', { type: null }, 'type is null'],
    ['an unknown onLost', { onLost: 'ignore' }, "onLost is 'ignore'; it must be 'throw' or 'warn'"],
    ['an unknown release', { release: 'later' }, "release is 'later'; it must be 'confirmed' or 'background'"],
    ['a reentry that is no boolean', { reentry: 'no' }, "reentry is 'no'; it must be true or false"],
    ['a signal that is none', { signal: {} }, 'signal is an object; it must be an AbortSignal'],
    ['a signal that is null', { signal: null }, 'signal is null; it must be an AbortSignal'],
    ['a group that is no string', { group: 5 }, 'group is 5; it must be a string of at most 200 characters'],
    [
      'a group of 201 characters',
      { group: 'x'.repeat(201) },
      `group is '${'x'.repeat(40)}'; it must be a string of at most 200 characters`,
    ],
    ['a waitTime below 0', { waitTime: -1 }, 'waitTime is -1'],
    ['an outageTimeout below 0', { outageTimeout: -1 }, 'outageTimeout is -1'],
    ['a leaseTime below 100 ms', { leaseTime: 99 }, 'leaseTime is 99'],
    ['a holdAtMost of 0', { holdAtMost: 0 }, 'holdAtMost is 0: it must be at least 1 ms'],
    ['a holdAtMost above 24 days', { holdAtMost: MAX_TIMEOUT + 1 }, 'holdAtMost is 2147483648'],
    ['a newest that is no boolean', { newest: 'yes' }, "newest is 'yes'; it must be true or false"],
  ])('cannot be %s', (_, options, why) => {
    expect(refusal(() => termsOf(options))).toContain(`acquire(): ${why}`);
  });

  it('may be as long as the limits', () => {
    expect(termsOf({ group: 'x'.repeat(200), holdAtMost: 1 })).toMatchObject({ holdAtMost: 1 });
    expect(termsOf({ holdAtMost: MAX_TIMEOUT }).holdAtMost).toBe(MAX_TIMEOUT);
  });

  it.each(['reentrant', 'fair', 'read', 'write', 'fenced'])('may name the type %s', (type) => {
    expect(termsOf({ type }).type).toBe(type);
  });

  it('make a lock that several may hold one of its own type', () => {
    expect(termsOf({ permits: 3 })).toMatchObject({ type: 'permits', permits: 3 });
    expect(termsOf({ permits: 3, type: 'reentrant' })).toMatchObject({ type: 'permits', permits: 3 });
    expect(refusal(() => termsOf({ permits: 3, type: 'fair' }))).toContain(
      "permits and type: 'fair' exclude each other",
    );
    expect(refusal(() => termsOf({ permits: 0 }))).toContain('permits is 0');
  });

  it('let only the newest caller wait, if it waits for a lock that one holds', () => {
    expect(termsOf({ newest: true }).newest).toBe(true);
    expect(termsOf({ newest: true, type: 'reentrant' }).newest).toBe(true);
    for (const [others, why] of [
      [{ type: 'read' }, "newest and type: 'read' exclude each other"],
      [{ permits: 2 }, 'newest and permits exclude each other'],
      [{ waitTime: 0 }, 'newest and waitTime: 0 exclude each other'],
    ] as const) {
      expect(refusal(() => termsOf({ newest: true, ...others }))).toContain(why);
      expect(termsOf({ newest: false, ...others }).newest).toBe(false);
    }
    expect(refusal(() => termsOf({ newest: true }, { waitTime: ms(0) }))).toContain('waitTime: 0');
  });

  it('of an adoption are only those that concern its lease', () => {
    const options = { leaseTime: '3s', outageTimeout: '2s', group: 'stock' } as const;
    expect(toAdoptTerms(options, DEFAULTS, 'adopt()')).toMatchObject({
      leaseTime: 3_000,
      fixed: true,
      outageTimeout: 2_000,
      onLost: 'warn',
      group: 'stock',
    });
    expect(refusal(() => toAdoptTerms({ waitTime: 5 } as never, DEFAULTS, 'adopt()'))).toBe(
      "adopt(): there is no option 'waitTime'; there are leaseTime, outageTimeout, group",
    );
  });
});

describe('the number of callers that may hold a lock', () => {
  it.each([1, 2, 1_000])('can be %d', (permits) => {
    expect(toPermits(permits, undefined, 'acquire()')).toBe(permits);
  });

  it.each([
    [0, '0'],
    [-1, '-1'],
    [1_001, '1001'],
    [1.5, '1.5'],
    [Number.NaN, 'NaN'],
    [null, 'null'],
    ['3', "'3'"],
    ['x'.repeat(50), `'${'x'.repeat(40)}'`],
  ])('cannot be %p', (permits, shown) => {
    expect(refusal(() => toPermits(permits, undefined, 'acquire()'))).toBe(
      `acquire(): permits is ${shown}; it must be a whole number from 1 to 1000`,
    );
  });
});

it('the option newest is named in errors as its user has written it', () => {
  const refused = refusal(() => checkNewest({ waitTime: 0 }, '@Run()', "onBusy: 'newest'"));
  expect(refused).toContain("@Run(): onBusy: 'newest' and waitTime: 0 exclude each other");
});

describe('the options of a call', () => {
  const TABLE = { limit: wholeNumber(1, 5), mode: oneOf('a', 'b'), on: TRUE_OR_FALSE };
  const check = (options: object) => checkOptions(options, TABLE, 'list()', { depth: 'write limit' });

  it.each([undefined, null, 'waitTime', 5])('are refused if they are in no object, but in %p', (options) => {
    expect(refusal(() => check(options as never))).toBe(
      `list(): the options must be an object, but they are ${String(options)}`,
    );
  });

  it.each([
    [{ zzzzzz: 2 }, "there is no option 'zzzzzz'; there are limit, mode, on"],
    [{ limti: undefined }, "there is no option 'limti'; did you mean 'limit'?"],
    [{ toString: 1 }, "there is no option 'toString'; there are limit, mode, on"],
    [{ depth: 2 }, "there is no option 'depth': write limit"],
    [{ limit: 0 }, 'limit is 0; it must be a whole number from 1 to 5'],
    [{ limit: 1.5 }, 'limit is 1.5; it must be a whole number from 1 to 5'],
    [{ mode: 'c' }, "mode is 'c'; it must be 'a' or 'b'"],
    [{ on: [] }, 'on is a list; it must be true or false'],
  ])('are refused with what is wrong: %j', (options, why) => {
    expect(refusal(() => check(options))).toBe(`list(): ${why}`);
  });

  it('may be left out, or be undefined', () => {
    for (const options of [{}, { limit: undefined }, { limit: 5, mode: 'b', on: false }])
      expect(() => check(options)).not.toThrow();
  });
});
