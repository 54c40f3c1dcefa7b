import { type Renewable, RenewalList } from '../../../lib/engine/hold/renewal-list.js';

class Thing implements Renewable<Thing> {
  readonly key = 'a lock';
  readonly type = 'reentrant';
  readonly owner = 'c:1';
  readonly standby = undefined;
  readonly slot = -1;
  readonly fixed = false;
  readonly lost = undefined;
  readonly confirmed = { monotonic: 0, wall: 0 };
  list: RenewalList<Thing> | undefined;
  earlier: Thing | undefined;
  later: Thing | undefined;

  constructor(
    readonly name: string,
    readonly leaseEnd: number,
    readonly leaseTime = leaseEnd,
    readonly validFor = leaseEnd,
  ) {}

  confirm(): void {}
}

describe('the list of leases', () => {
  const thing = (name: string, end: number) => new Thing(name, end);
  const named = (list: RenewalList<Thing>) => {
    const names: string[] = [];
    for (let { first: thing } = list; thing !== undefined; thing = thing.later) {
      names.push(thing.name);
      expect(names.length).toBeLessThan(20);
    }
    return names.join('');
  };

  it('is in the order in which they end, and in the order of arrival if they end together', () => {
    const list = new RenewalList<Thing>();
    for (const [name, end] of [
      ['c', 30],
      ['a', 10],
      ['e', 50],
      ['b', 20],
      ['d', 30],
    ] as const)
      list.push(thing(name, end));
    expect(named(list)).toBe('abcde');
  });

  it.each([
    ['a', 'bcd'],
    ['b', 'acd'],
    ['d', 'abc'],
    ['ab', 'cd'],
    ['cd', 'ab'],
    ['abcd', ''],
  ])('from which %s are removed keeps the others, and takes new ones', (leaving, others) => {
    const list = new RenewalList<Thing>();
    const things = [...'abcd'].map((name, i) => thing(name, i));
    for (const one of things) list.push(one);
    for (const one of things) if (leaving.includes(one.name)) list.remove(one);
    for (const one of things) expect(one.list === list).toBe(others.includes(one.name));
    expect(named(list)).toBe(others);
    list.push(thing('z', 100));
    list.push(thing('y', -100));
    expect(named(list)).toBe(`y${others}z`);
  });

  it('can be moved into another one', () => {
    const list = new RenewalList<Thing>();
    const other = new RenewalList<Thing>();
    list.push(thing('a', 10));
    list.push(thing('c', 30));
    other.push(thing('b', 20));
    list.moveTo(other);
    expect(named(list)).toBe('');
    expect(named(other)).toBe('abc');
  });
});
