import { LockConfigurationError } from '../../../lib/engine/errors.js';
import { checkFlightOptions, toFlightTerms } from '../../../lib/engine/flights/flight-terms.js';
import { JSON_TEXT } from '../../../lib/engine/flights/serialize-result.js';
import type { AcquisitionTerms, LockOptions } from '../../../lib/engine/terms/lock-options.js';

const MIB = 1024 * 1024;

/** The terms for these options. Those that locks have, too, are not checked. */
const termsOf = (options: unknown) =>
  toFlightTerms(options as object, 'singleFlight()', () => ({}) as AcquisitionTerms);

describe('the options of a single flight', () => {
  it('can be left out', () => {
    expect(termsOf(undefined)).toMatchObject({ keepFor: 0, maxSize: MIB, serializer: JSON_TEXT });
  });

  it.each([null, 5, 'price'])('cannot be %j', (options) => {
    expect(() => termsOf(options)).toThrow(LockConfigurationError);
  });

  it.each([0, 1, 512 * MIB])('limit results to %d bytes', (maxSize) => {
    expect(termsOf({ maxSize }).maxSize).toBe(maxSize);
  });

  it.each([-1, 1.5, 512 * MIB + 1, Number.NaN, '5'])('cannot limit results to %s bytes', (maxSize) => {
    expect(() => termsOf({ maxSize })).toThrow(LockConfigurationError);
  });

  it('keep a result for up to ten years', () => {
    expect(termsOf({ keepFor: '3650d' }).keepFor).toBe(3_650 * 24 * 60 * 60 * 1_000);
    for (const keepFor of ['4000d', -1]) expect(() => termsOf({ keepFor })).toThrow(LockConfigurationError);
  });

  it('name a serializer of two functions', () => {
    const [serialize, deserialize] = [String, Number];
    expect(termsOf({ serialize, deserialize }).serializer).toEqual({ serialize, deserialize });
    for (const part of [{ serialize }, { deserialize }, { serialize, deserialize: 'number' }])
      expect(() => termsOf(part)).toThrow(LockConfigurationError);
  });

  it.each([
    [null, 'the options must be an object, but they are null'],
    ['price', 'the options must be an object, but they are price'],
    [{ type: undefined }, "there is no option 'type': a single flight has no lock types"],
    [{ newest: false }, "there is no option 'newest': all callers get the result"],
    [{ permits: 2 }, "there is no option 'permits': one call computes the result"],
    [{ release: 'confirmed' }, "there is no option 'release': other callers get the result only with the release"],
    [{ holdAtMost: '1m' }, "there is no option 'holdAtMost': other callers wait for the result"],
    [{ maxSize: -1 }, 'maxSize is -1; it must be a whole number from 0 to 536870912'],
    [{ keepFor: -1 }, 'keepFor is -1: it must be at least 0 ms'],
    [{ serialize: String }, 'serialize and deserialize belong together: give both or neither'],
    [{ serialize: 'a', deserialize: 'b' }, "serialize is 'a'; it must be a function"],
  ])('are refused with the name of the call: %j', (options, why) => {
    expect(() => termsOf(options)).toThrow(`singleFlight(): ${why}`);
  });

  it('have those of locks in common, which are checked like theirs', () => {
    const seen: LockOptions[] = [];
    const options = {
      waitTime: '1s',
      group: 'prices',
      keepFor: '2s',
      maxSize: 5,
      serialize: String,
      deserialize: Number,
    };
    const terms = toFlightTerms(options as never, 'singleFlight()', (others) => {
      seen.push(others);
      return { group: 'checked' } as AcquisitionTerms;
    });
    expect(seen).toEqual([{ waitTime: '1s', group: 'prices' }]);
    expect(terms).toMatchObject({ group: 'checked', keepFor: 2_000, maxSize: 5 });
  });

  it('may leave out a serializer by undefined', () => {
    expect(termsOf({ serialize: undefined, deserialize: undefined }).serializer).toBe(JSON_TEXT);
  });

  it('are checked in full before there is a service', () => {
    expect(() => checkFlightOptions({}, '@SingleFlight()')).not.toThrow();
    expect(() => checkFlightOptions({ leaseTime: '5s', waitTime: 0, keepFor: '1m' }, '@SingleFlight()')).not.toThrow();
    for (const options of [
      { leaseTime: 'soon' },
      { waitTime: -1 },
      { keepFor: 'soon' },
      { maxsize: 5 },
      { type: 'fair' },
    ])
      expect(() => checkFlightOptions(options as object, '@SingleFlight()')).toThrow(LockConfigurationError);
  });
});
