declare global {
  namespace jest {
    interface Matchers<R> {
      /** A number of at least `least` and at most `most`. */
      toBeWithin(least: number, most: number): R;
      /** A list of numbers, each greater than the one before it. */
      toStrictlyGrow(): R;
    }
  }
}

expect.extend({
  toBeWithin(value: unknown, least: number, most: number) {
    const pass = typeof value === 'number' && value >= least && value <= most;
    return { pass, message: () => `expected ${value} ${pass ? 'not ' : ''}to be within ${least} and ${most}` };
  },

  toStrictlyGrow(values: number[]) {
    const pass = values.every((value, n) => n === 0 || value > values[n - 1]);
    return { pass, message: () => `expected ${values.join(', ')} ${pass ? 'not ' : ''}to grow with each` };
  },
});

export {};
