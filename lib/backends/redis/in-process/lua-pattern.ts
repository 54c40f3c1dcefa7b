const CLASSES: Readonly<Record<string, string>> = {
  a: 'A-Za-z',
  c: '\\x00-\\x1f\\x7f',
  d: '0-9',
  l: 'a-z',
  p: '!-\\/:-@\\[-`{-~',
  s: '\\t-\\r ',
  u: 'A-Z',
  w: 'A-Za-z0-9',
  x: 'A-Fa-f0-9',
};

const known = new Map<string, RegExp>();

/**
 * A pattern of Lua as a regular expression.
 *
 * @throws Error for `%b`, `%f`, back references and captures of positions, which no script uses
 */
export function luaPattern(pattern: string, flags: 's' | 'gs' = 's'): RegExp {
  const id = flags + pattern;
  let expression = known.get(id);
  if (expression === undefined) {
    expression = new RegExp(translated(pattern), flags);
    known.set(id, expression);
  }
  return expression;
}

function translated(pattern: string): string {
  const refuse = (construct: string): never => {
    throw new Error(`The pattern ${pattern}: ${construct} is not supported in this process`);
  };
  let out = '';
  let at = 0;
  if (pattern[0] === '^') {
    out = '^';
    at = 1;
  }
  while (at < pattern.length) {
    const character = pattern[at] as string;
    let one: string;
    if (character === '%') {
      one = escaped(pattern[at + 1] ?? '', refuse);
      at += 2;
    } else if (character === '[') {
      const end = endOfSet(pattern, at, refuse);
      one = setOf(pattern.slice(at + 1, end), refuse);
      at = end + 1;
    } else if (character === '(' || character === ')') {
      if (pattern.startsWith('()', at)) refuse('a capture of a position');
      out += character;
      at++;
      continue;
    } else if (character === '$' && at === pattern.length - 1) {
      out += '$';
      break;
    } else {
      one = character === '.' ? '.' : literal(character);
      at++;
    }
    const repeat = pattern[at] ?? '';
    if ('*+?-'.includes(repeat) && repeat !== '') {
      out += one + (repeat === '-' ? '*?' : repeat);
      at++;
    } else out += one;
  }
  return out;
}

function escaped(character: string, refuse: (construct: string) => never): string {
  if (/[bf\d]/.test(character)) refuse(`%${character}`);
  const inside = CLASSES[character.toLowerCase()];
  if (inside === undefined) return /[A-Za-z]/.test(character) ? refuse(`%${character}`) : literal(character);
  return /[A-Z]/.test(character) ? `[^${inside}]` : `[${inside}]`;
}

function endOfSet(pattern: string, from: number, refuse: (construct: string) => never): number {
  let at = from + 1;
  if (pattern[at] === '^') at++;
  // A bracket in front is a member.
  if (pattern[at] === ']') at++;
  while (at < pattern.length && pattern[at] !== ']') at += pattern[at] === '%' ? 2 : 1;
  return at < pattern.length ? at : refuse('a set without its end');
}

function setOf(set: string, refuse: (construct: string) => never): string {
  const negated = set[0] === '^';
  const members = (negated ? set.slice(1) : set).replace(/%(.)|([^%])/gs, (_text, class_, member) => {
    if (class_ === undefined) return member === '-' ? '-' : literal(member);
    const inside = CLASSES[class_];
    if (inside !== undefined) return inside;
    return /[A-Za-z\d]/.test(class_) ? refuse(`%${class_} in a set`) : literal(class_);
  });
  return `[${negated ? '^' : ''}${members}]`;
}

function literal(character: string): string {
  return character.replace(/[\\^$.*+?()[\]{}|/-]/, '\\$&');
}
