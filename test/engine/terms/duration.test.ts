import { LockConfigurationError } from '../../../lib/engine/errors.js';
import {
  type Duration,
  FOREVER,
  MAX_LEASE_TIME,
  MAX_TIMEOUT,
  toFixedLease,
  toHoldLimit,
  toLeaseTime,
  toMilliseconds,
  toWaitTime,
} from '../../../lib/engine/terms/duration.js';

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

const given = (value: unknown) => toMilliseconds(value as Duration, 'timeout');

describe('a duration', () => {
  it.each<[Duration, number]>([
    [0, 0],
    [250, 250],
    ['250ms', 250],
    ['250', 250],
    ['30s', 30_000],
    ['1.5 seconds', 1_500],
    ['2m', 120_000],
    ['1h', 3_600_000],
    ['24d', 24 * 86_400_000],
    [2_147_483_647, 2_147_483_647],
  ])('%j is %d milliseconds', (value, milliseconds) => {
    expect(given(value)).toBe(milliseconds);
  });

  it('is rounded up to whole milliseconds, so that it is never shorter than the caller wanted', () => {
    expect([given(0.2), given(1.5), given('0.25ms')]).toEqual([1, 2, 1]);
  });

  it.each([undefined, null, {}, 1n, true, Number.NaN, '', 'soon', '5 apples', '1s '.repeat(50)])(
    'cannot be %p',
    (value) => {
      const shown = typeof value === 'string' ? `'${value.slice(0, 40)}'` : String(value);
      expect(refusal(() => given(value))).toBe(
        `timeout is ${shown}: give milliseconds as a number, or a string such as '30s' or '2m'`,
      );
    },
  );

  it('can be a text of 100 characters, and no longer one', () => {
    expect(given('1s'.padStart(100, '0'))).toBe(1_000);
    expect(refusal(() => given('1s'.padStart(101, '0')))).toContain('give milliseconds');
  });

  it('is finite', () => {
    expect(refusal(() => given(Number.POSITIVE_INFINITY))).toBe(
      'timeout is Infinity: it must be finite, and at most 2147483647 ms (24 days)',
    );
    expect(refusal(() => given(Number.NEGATIVE_INFINITY))).toBe('timeout is -Infinity: it must be at least 0 ms');
  });

  it('is at least 0 and at most 24 days, if nothing else is said', () => {
    expect(refusal(() => given(-1))).toBe('timeout is -1: it must be at least 0 ms');
    expect(refusal(() => given(MAX_TIMEOUT + 1))).toBe(
      'timeout is 2147483648: it must be at most 2147483647 ms (24 days)',
    );
  });

  it('is between the bounds that are given', () => {
    const bounded = (value: Duration) => toMilliseconds(value, 'timeout', 5, 10);
    expect([bounded(5), bounded(10)]).toEqual([5, 10]);
    expect(refusal(() => bounded(4))).toContain('it must be at least 5 ms');
    expect(refusal(() => bounded(11))).toContain('it must be at most 10 ms');
  });
});

describe('a lease time', () => {
  it('is from 100 ms to 10 years', () => {
    expect(MAX_LEASE_TIME).toBe(315_576_000_000);
    expect(['100ms', '10y'].map((value) => toLeaseTime(value as Duration, 'leaseTime'))).toEqual([100, MAX_LEASE_TIME]);
    expect(refusal(() => toLeaseTime(99, 'leaseTime'))).toBe('leaseTime is 99: it must be at least 100 ms');
    expect(refusal(() => toLeaseTime(MAX_LEASE_TIME + 1, 'leaseTime'))).toContain(
      'it must be at most 315576000000 ms (10 years)',
    );
  });

  it('that is a number without a unit, and too short, may have been meant in seconds', () => {
    expect(refusal(() => toLeaseTime('30', 'leaseTime'))).toBe(
      "leaseTime is '30': it must be at least 100 ms; did you mean '30s'?",
    );
    for (const clear of [30, '30ms', '-5', '3.5'] as const)
      expect(refusal(() => toLeaseTime(clear, 'leaseTime'))).not.toContain('did you mean');
  });
});

describe('an option that sets a limit', () => {
  it.each([
    [
      toFixedLease,
      'leaseTime is Infinity: it must be finite, and at most 315576000000 ms (10 years); to hold it until it is released, leave leaseTime out',
    ],
    [
      toHoldLimit,
      'holdAtMost is Infinity: it must be finite, and at most 2147483647 ms (24 days); to set no limit, leave holdAtMost out',
    ],
  ])('says how to do without one: %p', (check, message) => {
    const [option] = message.split(' ');
    expect(refusal(() => check(Number.POSITIVE_INFINITY, option))).toBe(message);
    expect(refusal(() => check('11y', option))).not.toContain('leave');
    expect(check('1s', option)).toBe(1_000);
  });

  it('is at least 100 ms for a lease, and 1 ms for the time that a body holds it', () => {
    expect(refusal(() => toFixedLease(99, 'leaseTime'))).toBe('leaseTime is 99: it must be at least 100 ms');
    expect(refusal(() => toHoldLimit(0, 'holdAtMost'))).toBe('holdAtMost is 0: it must be at least 1 ms');
  });
});

describe('a wait time', () => {
  it('may be 0, up to 24 days, or forever', () => {
    expect([0, '24d', FOREVER].map((value) => toWaitTime(value as Duration, 'waitTime'))).toEqual([
      0,
      24 * 86_400_000,
      Number.POSITIVE_INFINITY,
    ]);
    for (const bad of [-1, Number.NEGATIVE_INFINITY, MAX_TIMEOUT + 1])
      expect(refusal(() => toWaitTime(bad, 'waitTime'))).toContain(`waitTime is ${bad}`);
  });
});
