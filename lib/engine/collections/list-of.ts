/**
 * Creates the lists that every acquisition needs. Like the other objects of an acquisition, which are instances of
 * classes, they are not written as literals (`[element]`), because V8 would allocate literals in the old generation.
 * See docs/internals/decisions/classes-on-the-hot-path.md.
 */
export function listOf<Element>(...elements: readonly Element[]): readonly Element[] {
  return elements;
}
