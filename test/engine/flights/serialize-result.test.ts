import { LockConfigurationError } from '../../../lib/engine/errors.js';
import { type FlightSerializer, JSON_TEXT, resultOf, textOf } from '../../../lib/engine/flights/serialize-result.js';

class Money {
  constructor(readonly amount: number) {}
}
class Order {
  total(): number {
    return 5;
  }
}
class BigOrder extends Order {
  readonly size = 3;
}
class Price extends Money {}

/** The LockConfigurationError that `call` throws. */
function refusal(call: () => unknown): Error {
  try {
    call();
  } catch (error) {
    expect(error).toBeInstanceOf(LockConfigurationError);
    return error as Error;
  }
  throw new Error('it was not refused');
}

const passed = (result: unknown) => resultOf(textOf(result, JSON_TEXT, 'price'), JSON_TEXT, 'price');

describe('the result of a single flight', () => {
  const shared = { n: 1 };
  it.each<[string, unknown]>([
    ['a string', 'a'],
    ['an empty string', ''],
    ['a number', -1.5],
    ['0', 0],
    ['true', true],
    ['false', false],
    ['null', null],
    ['an empty list', []],
    ['a list', [1, 'a', null, [true]]],
    ['an object', { a: 1, b: { c: [] } }],
    ['the same object twice', [shared, shared, { shared }]],
  ])('is passed on as JSON: %s', (_, result) => {
    expect(passed(result)).toEqual(result);
  });

  it('may be nothing, which is stored as an empty text', () => {
    expect(textOf(undefined, JSON_TEXT, 'price')).toBe('');
    expect(passed(undefined)).toBeUndefined();
  });

  it('may have a class without methods, and no prototype', () => {
    expect(passed(new Money(5))).toEqual({ amount: 5 });
    expect(passed(new Price(5))).toEqual({ amount: 5 });
    expect(passed(Object.assign(Object.create(null), { a: 1 }))).toEqual({ a: 1 });
  });

  const loop: Record<string, unknown> = { a: {} };
  (loop.a as Record<string, unknown>).b = loop;
  it.each<[string, unknown]>([
    ['result is NaN', Number.NaN],
    ['result is Infinity', Number.POSITIVE_INFINITY],
    ['result is a bigint', 1n],
    ['result is a symbol', Symbol('a')],
    ['result is a function', () => {}],
    ['result.a is undefined', { a: undefined }],
    ['result[1] is undefined', [1, undefined]],
    ['result[0] is undefined', new Array(1)],
    ['result is a Date', new Date(0)],
    ['result.list[1].at is a Date', { list: [1, { at: new Date(0) }] }],
    ['result is a Map', new Map()],
    ['result is a Order', new Order()],
    ['result is a BigOrder', new BigOrder()],
    ['result is a class instance', Object.create({ total: () => 5, constructor: undefined })],
    ['result has a toJSON', { toJSON: () => 5 }],
    ['result[0] has a toJSON', [Object.assign([], { toJSON: () => 5 })]],
    ['result.a.b contains itself', loop],
  ])('is refused if JSON would change it: %s', (problem, result) => {
    expect(refusal(() => textOf(result, JSON_TEXT, 'price')).message).toBe(
      `The result of the single flight 'price' is not JSON: ${problem}. Return plain data, or give serialize and deserialize`,
    );
  });

  it('is refused for its first problem', () => {
    expect(refusal(() => textOf([1n, new Date(0)], JSON_TEXT, 'price')).message).toContain('result[0] is a bigint');
  });

  describe('with a serializer', () => {
    const dates: FlightSerializer<unknown> = {
      serialize: (result) => (result as Date).toISOString(),
      deserialize: (text) => new Date(text),
    };

    it('is what the serializer makes of it, and is not checked', () => {
      const text = textOf(new Date(0), dates, 'price');
      expect(text).toBe('1970-01-01T00:00:00.000Z');
      expect(resultOf(text, dates, 'price')).toEqual(new Date(0));
    });

    it('is refused if the serializer throws, with what it threw', () => {
      const error = refusal(() => textOf(5, dates, 'price'));
      expect(error.message).toMatch(/^serialize of the single flight 'price' failed: TypeError: /);
      expect(error.cause).toBeInstanceOf(TypeError);
    });

    it('is refused if the serializer gives no text', () => {
      for (const text of [5, undefined, null])
        expect(
          refusal(() => textOf(5, { ...dates, serialize: () => text as unknown as string }, 'price')).message,
        ).toBe("serialize of the single flight 'price' must return a string");
    });
  });

  it('is refused if its text cannot be read, with what was thrown', () => {
    const error = refusal(() => resultOf('{', JSON_TEXT, 'price'));
    expect(error.message).toBe(
      "The result of the single flight 'price' could not be read. It may come from another version of this application, or from somebody else. forgetResult() deletes it",
    );
    expect(error.cause).toBeInstanceOf(SyntaxError);
  });
});
