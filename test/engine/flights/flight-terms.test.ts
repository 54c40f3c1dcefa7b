import { LockConfigurationError } from '../../../lib/engine/errors.js';
import { checkFlightOptions, toFlightTerms } from '../../../lib/engine/flights/flight-terms.js';
import { JSON_TEXT } from '../../../lib/engine/flights/serialize-result.js';
import type { AcquisitionTerms } from '../../../lib/engine/terms/lock-options.js';

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
