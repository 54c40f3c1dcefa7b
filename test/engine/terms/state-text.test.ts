import { sizeText, synchronizerText } from '../../../lib/engine/terms/state-text.js';

describe('in words', () => {
  it.each([
    ['the number of a semaphore or latch of which nothing else is known', { type: 'counter', count: 3 }, 'a number: 3'],
    ['the count of a latch', { type: 'count-down-latch', count: 3, total: 4 }, '3 of 4 steps left'],
    ['the count of a latch without a total', { type: 'count-down-latch', count: 3 }, '3 steps left'],
    ['the permits of a semaphore', { type: 'semaphore', count: 3, total: 10, taken: 7 }, '7 of 10 taken'],
    ['a semaphore of which no permit is taken', { type: 'semaphore', count: 3, total: 3, taken: 0 }, '0 of 3 taken'],
    ['a semaphore without a total', { type: 'semaphore', count: 3 }, '3 available'],
  ] as const)('%s', (_, counts, text) => {
    expect(synchronizerText(counts)).toBe(text);
  });

  it.each([
    [0, '0 B'],
    [999, '999 B'],
    [1_000, '1.0 kB'],
    [2_149, '2.1 kB'],
    [999_949, '999.9 kB'],
    [999_950, '1.0 MB'],
    [1_048_576, '1.0 MB'],
    [12_340_000, '12.3 MB'],
  ])('the size of %d bytes', (bytes, text) => {
    expect(sizeText(bytes)).toBe(text);
  });
});
