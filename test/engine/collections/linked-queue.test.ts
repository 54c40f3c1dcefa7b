import { type Linked, LinkedQueue } from '../../../lib/engine/collections/linked-queue.js';

class Element implements Linked<Element> {
  previous: Element | undefined;
  next: Element | undefined;

  constructor(readonly name: string) {}
}

describe('an iteration over a linked queue', () => {
  const queueOf = (...names: string[]) => {
    const queue = new LinkedQueue<Element>();
    const elements = new Map(names.map((name) => [name, new Element(name)]));
    for (const element of elements.values()) queue.push(element);
    return { queue, remove: (name: string) => queue.remove(elements.get(name)!) };
  };

  it.each([
    ['the present element', 'b', 'abcde'],
    ['the next element', 'c', 'abde'],
    ['the present element and the next ones', 'bcd', 'abe'],
    ['an earlier element', 'a', 'abcde'],
    ['all that are left', 'bcde', 'ab'],
  ])('continues when %s leaves meanwhile', (_, leaving, seen) => {
    const { queue, remove } = queueOf(...'abcde');
    const walked: string[] = [];
    for (const { name } of queue) {
      walked.push(name);
      if (name === 'b') for (const other of leaving) remove(other);
    }
    expect(walked.join('')).toBe(seen);
    expect(queue.length).toBe(5 - leaving.length);
  });

  it('continues inside another one, which continues too', () => {
    const { queue, remove } = queueOf(...'abcd');
    const walked: string[] = [];
    for (const outer of queue) {
      for (const inner of queue) {
        walked.push(outer.name + inner.name);
        if (outer.name === 'a' && inner.name === 'a') remove('b');
        if (inner.name === 'c') break;
      }
    }
    expect(walked).toEqual(['aa', 'ac', 'ca', 'cc', 'da', 'dc']);
  });

  it('continues when the next element leaves after an inner one has ended', () => {
    const { queue, remove } = queueOf(...'abc');
    const walked: string[] = [];
    for (const { name } of queue) {
      walked.push(name);
      if (name !== 'a') continue;
      expect([...queue]).toHaveLength(3);
      remove('b');
    }
    expect(walked.join('')).toBe('ac');
  });
});
