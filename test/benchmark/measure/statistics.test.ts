import { jainIndex, median, medianInterval, percentile } from './statistics.js';

it('takes the middle of values, and leaves out what was not measured', () => {
  expect(median([3, 1, Number.NaN, 2])).toBe(2);
  expect(median([4, 1])).toBe(2.5);
  expect(median([])).toBeNaN();
});

it('gives the interval of a median from order statistics, where there are enough of them', () => {
  const values = (count: number) => Array.from({ length: count }, (_, i) => count - i);
  expect(medianInterval(values(5), 0.95)).toBeUndefined();
  expect(medianInterval(values(6), 0.95)).toEqual([1, 6]);
  // 97.9 %; the third and the eighth would give 89.1 %.
  expect(medianInterval(values(10), 0.95)).toEqual([2, 9]);
  expect(medianInterval(values(20), 0.95)).toEqual([6, 15]);
});

it('finds the value that a share does not exceed', () => {
  const hundred = Array.from({ length: 100 }, (_, i) => 100 - i);
  expect(percentile(hundred, 0.5)).toBe(51);
  expect(percentile(hundred, 0.99)).toBe(100);
});

it('calls equal shares fair, and one that has all unfair', () => {
  expect(jainIndex([5, 5, 5, 5])).toBe(1);
  expect(jainIndex([20, 0, 0, 0])).toBe(0.25);
  expect(jainIndex([0, 0])).toBe(0);
});
