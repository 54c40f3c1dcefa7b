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

/** An empty set matches nothing, its opposite anything. */
function setPattern(set: string, isNegated: boolean): string {
  const members = set.replace(/\\(.)|[^-]/gsu, (part, escaped?: string) => literal(escaped ?? part));
  return `[${isNegated ? '^' : ''}${members}]`;
}

function literal(character: string): string {
  return /[\\^$.*+?()[\]{}|/-]/.test(character) ? `\\${character}` : character;
}
