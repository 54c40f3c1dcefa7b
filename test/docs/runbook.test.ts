import * as library from 'nestjs-redis-lock';
import { readPages } from './support/markdown.js';
import { messagesOf, readMessages } from './support/messages.js';

const runbook = readPages().find(({ path }) => path === 'docs/runbook.md')?.text ?? '';
/** What the runbook shows as code, with the `\|` of tables as it is read. */
const entries = [...runbook.matchAll(/`([^`\n]+)`/g)].map(([, code]) => code.replaceAll('\\|', '|'));

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

  it('has a section for every error class', () => {
    const classes = Object.keys(library).filter((name) => /^Lock\w*Error$/.test(name));
    expect(classes).toContain('LockBusyError');
    expect(classes.filter((name) => !runbook.includes(`### ${name}\n`))).toEqual([]);
  });
});
