/**
 * Creates the lists that every acquisition needs. They are not literals (`[element]`), and neither are the other objects of an acquisition:
 * those are instances of classes.
 *
 * The reason: V8 observes how long objects live that a literal creates. If the first garbage collections happen during a burst of callers, all
 * of them are alive, and from then on V8 allocates such objects in the old generation for as long as the process runs. There a dead object
 * keeps the young objects alive to which it refers, until the next full collection. Each collection then promoted some 2 MB instead of 0.1 MB,
 * and an acquisition took up to twice the CPU time (64 in flight, Node.js 20; seen by `node --trace-gc-nvp --trace-pretenuring-statistics`).
 */
export function listOf<Element>(...elements: readonly Element[]): readonly Element[] {
  return elements;
}
