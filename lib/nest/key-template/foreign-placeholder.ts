/**
 * Placeholders of other libraries and languages. They would not be filled in here, so all calls would lock the same
 * name.
 */
const NOTATIONS = [
  String.raw`[#$%@]\{[^}]*\}`, // #{args[0]} ${id} %{id} @{id}
  String.raw`\{\{[^}]+\}\}`, // {{args[0]}}
  String.raw`\{(?:\d|(?:args|this)\b[^}]*|class|method)\}`, // {0} {args[0]}; {order} is a hash tag of Redis
  String.raw`<(?:args|this|class|method)\b[^>]*>?`, // <args[0]>; another < is text
  String.raw`[#$@]?(?<![\p{ID_Continue}])(?:args\s*[.[]|this\.)[^\s:,;|/>]*`, // #args[0] args[0]
  String.raw`#\[[^\]]*\]`, // #[0]
  String.raw`#[\p{ID_Start}_$][\p{ID_Continue}$.[\]]*`, // #orderId #p0; issue#42 is text
  String.raw`(?<![\p{ID_Continue}])\$[\p{ID_Start}_][\p{ID_Continue}.[\]]*`, // $id
  String.raw`/:[\p{ID_Start}_][\p{ID_Continue}]*`, // orders/:id
  '%[sdifjoO](?![0-9A-Za-z])', // %s; %7B is text
];

const FOREIGN = new RegExp(NOTATIONS.join('|'), 'u');

export interface ForeignPlaceholder {
  readonly text: string;
  readonly index: number;
  /** How to write it in this library: `write #<args[0]>`. */
  readonly remedy: string;
}

/** Finds placeholders of other notations in the literal text of a template. */
export function findForeignPlaceholder(literal: string): ForeignPlaceholder | undefined {
  const match = FOREIGN.exec(literal);
  if (match === null) return undefined;
  const [text] = match;
  return { text, index: match.index, remedy: remedyOf(text) };
}

function remedyOf(text: string): string {
  const path =
    /(?:args\[(?:\d+|\*)\]|this\.[\p{ID_Start}_$][\p{ID_Continue}$]*)(?:\.[\p{ID_Start}_$][\p{ID_Continue}$]*|\[(?:\d+|\*)\])*/u.exec(
      text,
    );
  if (path !== null) return `write #<${path[0]}>`;
  const name = /^\W*(class|method)\W*$/.exec(text);
  if (name !== null) return `write #<${name[1]}>`;
  const position = /^\W*[pa]?(\d)\W*$/.exec(text);
  if (position !== null) return `write #<args[${position[1]}]>`;
  return 'write #<args[0]> for the first argument, #<args[0].id> for a property of it';
}
