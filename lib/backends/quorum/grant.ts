/** What a node, or a majority of nodes, grants. */
export interface Grant {
  readonly granted: true;
  /** One for each lock. */
  readonly tokens: readonly number[];
  /** How many more tokens belong to each of them. */
  readonly reserved: number;
}
