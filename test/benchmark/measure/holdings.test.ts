import { countOverlaps, countWithin, longestWait, sorted } from './holdings.js';

const held = (...times: number[]) => Float64Array.from(times);

it('counts who took the lock while another process held it', () => {
  expect(countOverlaps([held(0, 2, 4, 6), held(2, 4, 6, 9)])).toBe(0);
  expect(countOverlaps([held(0, 2, 4, 6), held(1, 3, 7, 9)])).toBe(1);
  expect(countOverlaps([held(0, 9), held(1, 2, 3, 4)])).toBe(2);
  expect(countOverlaps([held(0, 3), held(), held(2, 4)])).toBe(1);
});

it('counts overlaps inside one process, once its holdings stand in order', () => {
  expect(countOverlaps([sorted(held(5, 6, 0, 2, 1, 3))])).toBe(1);
});

it('counts what each process started in a stretch of time', () => {
  expect(countWithin([held(0, 1, 2, 3, 4, 5), held(9, 10)], 1, 5)).toEqual([2, 0]);
});

it('finds the longest time that a process went without while others were served', () => {
  expect(longestWait([held(0, 1, 8, 9), held(2, 3, 4, 5)], 0, 10)).toBe(7);
  expect(longestWait([held(0, 5), held(6, 7)], 0, 100)).toBe(95);
});

it('does not call it waiting when nobody else was served', () => {
  expect(longestWait([held(0, 1, 50, 51), held(0.5, 1, 52, 53)], 0, 54)).toBeLessThan(53);
  expect(longestWait([held(0, 1, 50, 51)], 0, 51)).toBe(0);
});
