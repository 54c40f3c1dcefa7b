/** When a register checks the fencing token of a request. 'on read' includes 'on write'. */
export type Guard = 'never' | 'on write' | 'on read';

/**
 * Data that a lock protects: a number, and the highest token that was seen with it. It is like a row with the column
 * `fence` (see docs/fencing-tokens.md), but in this process, so that a test decides when a request arrives.
 */
export class Register {
  value = 0;
  private fence = 0;

  constructor(private readonly guard: Guard) {}

  /** `update … set fence = $1 where fence <= $1 returning value`. Undefined: refused. */
  read(token: number): number | undefined {
    if (this.guard !== 'on read') return this.value;
    if (token < this.fence) return undefined;
    this.fence = token;
    return this.value;
  }

  /** `update … set value = $1, fence = $2 where fence <= $2`. False: refused. */
  write(value: number, token: number): boolean {
    if (this.guard !== 'never') {
      if (token < this.fence) return false;
      this.fence = token;
    }
    this.value = value;
    return true;
  }
}
