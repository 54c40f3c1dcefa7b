/** `*`, `?`, `[a-c]`, `[^a]`, `\x`, and any other character. */
const PART = /\*|\?|\[(\^?)((?:\\.|[^\]\\])*)\]?|\\(.)|./gsu;

/** A regular expression for a glob pattern as Redis understands it. */
export function globPattern(glob: string): RegExp {
  const source = glob.replace(PART, (part, not: string | undefined, set: string | undefined, escaped?: string) => {
    if (part === '*') return '.*';
    if (part === '?') return '.';
    if (set !== undefined) return setPattern(set, not === '^');
    return literal(escaped ?? part);
  });
  return new RegExp(`^${source}$`, 'su');
}

/**
 * An empty set matches nothing, and a negated empty set matches any character. The ends of a range may be in any order.
 */
function setPattern(set: string, isNegated: boolean): string {
  const members = set.replace(
    /(\\.|.)-(\\.|.)|\\.|./gsu,
    (part, one: string | undefined, other: string | undefined) => {
      if (one === undefined || other === undefined) return member(part);
      const ends = [member(one), member(other)];
      return bare(one) <= bare(other) ? ends.join('-') : ends.reverse().join('-');
    },
  );
  return `[${isNegated ? '^' : ''}${members}]`;
}

/** A character of a set; `\x` stands for x. */
function member(part: string): string {
  const character = bare(part);
  return character === '-' ? '\\-' : literal(character);
}

function bare(part: string): string {
  return part.length > 1 && part.startsWith('\\') ? part.slice(1) : part;
}

function literal(character: string): string {
  return /[\\^$.*+?()[\]{}|/]/.test(character) ? `\\${character}` : character;
}
