import { bracesPair, toKey } from '../../../lib/engine/terms/lock-name.js';

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

it('the key of a lock begins with the prefix of its service', () => {
  expect(toKey('lock:', 'order', 'acquire()')).toBe('lock:order');
});
