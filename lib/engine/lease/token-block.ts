/** Fencing tokens that were reserved with an acquisition, for the callers to whom it is handed off. */
export class TokenBlock {
  /** How many are still unused. */
  left: number;

  constructor(readonly size: number) {
    this.left = size;
  }

  /** `undefined` where none were reserved. */
  static of(reserved: number): TokenBlock | undefined {
    return reserved > 0 ? new TokenBlock(reserved) : undefined;
  }
}
