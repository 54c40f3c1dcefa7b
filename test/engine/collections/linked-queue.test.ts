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

describe('a linked queue', () => {
  const queueOf = (...names: string[]) => {
    const queue = new LinkedQueue<Element>();
    const elements = names.map((name) => new Element(name));
    for (const element of elements) queue.push(element);
    return { queue, elements };
  };
  /** The names from the first to the last element, from the last to the first one, and the length. */
  const shape = (queue: LinkedQueue<Element>) => {
    let [forth, back] = ['', ''];
    for (let element = queue.first; element !== undefined; element = element.next) forth += element.name;
    for (let element = queue.last; element !== undefined; element = element.previous) back += element.name;
    return [forth, back, queue.length];
  };

  it('has its elements in the order of their arrival', () => {
    expect(shape(queueOf().queue)).toEqual(['', '', 0]);
    expect(shape(queueOf('a').queue)).toEqual(['a', 'a', 1]);
    expect(shape(queueOf('a', 'b', 'c').queue)).toEqual(['abc', 'cba', 3]);
  });

  it.each([
    [0, ['bc', 'cb', 2]],
    [1, ['ac', 'ca', 2]],
    [2, ['ab', 'ba', 2]],
  ])('closes the gap when the element at %i is removed, which keeps no link to the others', (index, left) => {
    const { queue, elements } = queueOf('a', 'b', 'c');
    const element = elements[index];
    expect(queue.remove(element)).toBe(true);
    expect(shape(queue)).toEqual(left);
    expect([element.previous, element.next]).toEqual([undefined, undefined]);
    queue.push(element);
    expect(shape(queue)[0]).toBe(`${left[0]}${element.name}`);
  });

  it('does not change when an element is removed that is not in it', () => {
    const { queue, elements } = queueOf('a', 'b');
    queue.remove(elements[0]);
    expect([queue.remove(elements[0]), queue.remove(new Element('c'))]).toEqual([false, false]);
    expect(shape(queue)).toEqual(['b', 'b', 1]);
    expect(queue.remove(elements[1])).toBe(true);
    expect(shape(queue)).toEqual(['', '', 0]);
    queue.push(elements[0]);
    expect(shape(queue)).toEqual(['a', 'a', 1]);
  });
});
