import * as library from 'nestjs-redis-lock';
import { readPages } from './support/markdown.js';
import { messagesOf, readMessages, readPieces } from './support/messages.js';

const runbook = readPages().find(({ path }) => path === 'docs/runbook.md')?.text ?? '';
const entries = codeIn(runbook);
/** The entries in the first column of a table: the log lines that an operator reads. */
const listed = [...runbook.slice(runbook.indexOf('## Log lines')).matchAll(/^\| (.*?) \| /gm)].flatMap(([, cell]) =>
  codeIn(cell ?? ''),
);

/** The code spans of a text, with the `\|` of tables as it is displayed. */
function codeIn(markdown: string): readonly string[] {
  return [...markdown.matchAll(/`([^`\n]+)`/g)].map(([, code]) => code.replaceAll('\\|', '|'));
}

/** Matches a text in which `…` stands for anything. */
function patternOf(text: string): RegExp {
  return new RegExp(
    `^${text
      .split(/…+/)
      .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
      .join('.*')}$`,
  );
}

function isExplained(message: string): boolean {
  const pattern = patternOf(message);
  return entries
    .filter((entry) => entry.replace(/[^a-z]/gi, '').length >= 8)
    .some((entry) => entry.includes(message) || pattern.test(entry) || patternOf(entry).test(message));
}

/** The parts of an entry, between its `…`, that no longer occur in the code. */
function staleParts(entry: string, pieces: ReadonlySet<string>): readonly string[] {
  // `NOPERM` and `ECONNREFUSED` come from Redis and from Node.js.
  if (/^[A-Z]+$/.test(entry)) return [];
  return entry.split(/…+/).filter((part) => letters(part) > 0 && !isMadeOf(part, pieces));
}

/**
 * Whether a text is a piece, a part of a piece, or several pieces in a row, of which the first and the last may be
 * incomplete.
 */
function isMadeOf(text: string, pieces: ReadonlySet<string>): boolean {
  if ([...pieces].some((piece) => piece.includes(text))) return true;
  // Short words without a space, such as 'a', could match a part of any word.
  const usable = [...pieces].filter((piece) => piece !== '' && (letters(piece) >= 4 || /[^a-z]/i.test(piece)));
  const inside = usable.filter((piece) => text.includes(piece));
  return [...text].some(
    (_, end) => end > 0 && usable.some((piece) => piece.endsWith(text.slice(0, end))) && reachesEnd(end),
  );

  function reachesEnd(from: number, seen = new Set<number>()): boolean {
    if (seen.has(from)) return false;
    seen.add(from);
    const rest = text.slice(from);
    return (
      rest === '' ||
      usable.some((piece) => piece.startsWith(rest)) ||
      inside.some((piece) => rest.startsWith(piece) && reachesEnd(from + piece.length, seen))
    );
  }
}

function letters(text: string): number {
  return text.replace(/[^a-z]/gi, '').length;
}

describe('the runbook', () => {
  it('explains every line that the library logs, and every error', () => {
    const messages = readMessages();
    expect(messages.length).toBeGreaterThan(60);
    expect(messages.filter(({ text }) => !isExplained(text))).toEqual([]);
  });

  it('would miss a new message', () => {
    const [message] = messagesOf("logger.warn(`The moon over '" + '${' + "name}' is full`);");
    expect(message).toBe("The moon over '…' is full");
    expect(isExplained(message)).toBe(false);
  });

  it('lists only messages that the library still has', () => {
    const pieces = readPieces();
    expect(listed.length).toBeGreaterThan(100);
    expect(listed.map((entry) => [entry, staleParts(entry, pieces)]).filter(([, parts]) => parts?.length)).toEqual([]);
  });

  it('shows as output only lines that match an entry', () => {
    const shown = [...runbook.matchAll(/^(?:WARN|ERROR|LOG) \[RedisLock\] (.+)$/gm)].map(([, line]) => line);
    expect(shown).not.toEqual([]);
    expect(shown.filter((line) => !listed.some((entry) => patternOf(entry).test(line)))).toEqual([]);
  });

  it('has a section for every error class', () => {
    const classes = Object.keys(library).filter((name) => /^Lock\w*Error$/.test(name));
    expect(classes).toContain('LockBusyError');
    expect(classes.filter((name) => !runbook.includes(`### ${name}\n`))).toEqual([]);
  });
});
