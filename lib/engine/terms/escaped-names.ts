/** How many names are remembered. */
const MOST = 100;

interface EscapedName {
  readonly name: string;
  /** What has made it: `the template of OrdersService.ship`. */
  readonly where: string;
}

/**
 * The names of this process in which a template or `lockName` has escaped a part, by what a plain string of the same
 * parts would be. If that one is locked as well, the code probably means one lock and has two.
 */
class EscapedNames {
  private readonly byPlainName = new Map<string, EscapedName>();
  /** Names that templates and `lockName` have made, and that can look like plain ones. */
  private readonly made = new Set<string>();

  get isEmpty(): boolean {
    return this.byPlainName.size === 0;
  }

  /**
   * Notes a name that a template or `lockName` has made.
   *
   * @param plain what a plain string of the same parts would be
   */
  note(name: string, plain: string, where: () => string): void {
    if (name === plain) {
      if (this.byPlainName.has(plain)) remember(this.made, name);
    } else if (this.byPlainName.size < MOST && !this.byPlainName.has(plain)) {
      this.byPlainName.set(plain, { name, where: where() });
      remember(this.made, name);
    }
  }

  /** The escaped name of the same parts, if there is one, and if this name is a plain one. */
  get(plain: string): EscapedName | undefined {
    const escaped = this.byPlainName.get(plain);
    return escaped === undefined || this.made.has(plain) ? undefined : escaped;
  }
}

function remember(names: Set<string>, name: string): void {
  if (names.size < 2 * MOST) names.add(name);
}

export const escapedNames = new EscapedNames();
