/** How many names are remembered. */
const MOST = 100;

interface EscapedName {
  readonly name: string;
  /** The method whose template has made it: `OrdersService.ship`. */
  readonly where: string;
}

/**
 * The names of this process in which a template has escaped a part, by what a plain string of the same parts would be. If
 * that one is locked as well, the code probably means one lock and has two.
 */
class EscapedNames {
  private readonly byPlainName = new Map<string, EscapedName>();

  get isEmpty(): boolean {
    return this.byPlainName.size === 0;
  }

  add(plain: string, escaped: EscapedName): void {
    if (this.byPlainName.size < MOST) this.byPlainName.set(plain, escaped);
  }

  get(plain: string): EscapedName | undefined {
    return this.byPlainName.get(plain);
  }
}

export const escapedNames = new EscapedNames();
