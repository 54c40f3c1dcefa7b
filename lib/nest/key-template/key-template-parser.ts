import { LockConfigurationError } from '../../engine/errors.js';
import { findForeignPlaceholder } from './foreign-placeholder.js';

/** Where a path starts: the arguments, the instance, the name of its class, the name of the method. */
export type Root = 'args' | 'this' | 'class' | 'method';

/** One step of a path: `.name`, `[2]`, or `[*]` (every element). `upTo` is the path with this step as its last. */
export type Step = { readonly upTo: string } & (
  | { readonly kind: 'property'; readonly name: string }
  | { readonly kind: 'index'; readonly index: number }
  | { readonly kind: 'every' }
);

/** `#<args[0].id>` */
export interface Expression {
  readonly root: Root;
  readonly steps: readonly Step[];
  /** As written, without `#<` and `>`. */
  readonly path: string;
}

const ROOTS: readonly string[] = ['args', 'this', 'class', 'method'] satisfies Root[];
const FORBIDDEN = ['__proto__', 'constructor', 'prototype'];
const IDENTIFIER = /[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*/uy;
const BRACKET = /\[(?:(\d{1,9})|\*)\]/y;

/**
 * Splits a template into literal texts and expressions: `'order:#<args[0].id>'` → `'order:'`, `args[0].id`.
 *
 *     template   = { text | '#<' path '>' }
 *     path       = 'class' | 'method' | 'args' bracket { step } | 'this' step { step }
 *     step       = '.' identifier | bracket
 *     bracket    = '[' digits ']' | '[*]'
 *
 * Text that resembles a placeholder of another notation (`#{args[0]}`, `${id}`, `#orderId`, `%s`, …) is refused.
 * `issue#42`, the hash tag `{order}` and a `<` are text.
 *
 * @param where how errors begin: `OrdersService.pay`
 * @throws LockConfigurationError with the position (from 1) of what is wrong
 */
export function parseTemplate(template: string, where: string): readonly (string | Expression)[] {
  const parts: (string | Expression)[] = [];
  let position = 0;
  for (let start = template.indexOf('#<'); start !== -1; start = template.indexOf('#<', position)) {
    if (start > position) parts.push(literal(template, position, start, where));
    const parser = new PathParser(template, start + 2, where);
    parts.push(parser.parse());
    position = parser.position;
  }
  if (position < template.length) parts.push(literal(template, position, template.length, where));
  return parts;
}

/** Refuses text that resembles a placeholder but is not one, because all calls would share one lock. */
function literal(template: string, start: number, end: number, where: string): string {
  const text = template.slice(start, end);
  const foreign = findForeignPlaceholder(text);
  if (foreign === undefined) return text;
  throw new LockConfigurationError(
    `${where}: the key '${template}' is wrong at character ${start + foreign.index + 1}: '${foreign.text}' is not filled in, so all calls would share one lock; ${foreign.remedy}. If it is meant as text, use a key function: key: () => '…'`,
  );
}

class PathParser {
  private readonly steps: Step[] = [];

  constructor(
    private readonly template: string,
    public position: number,
    private readonly where: string,
  ) {}

  parse(): Expression {
    const start = this.position;
    const root = this.identifier(`a path begins with ${ROOTS.join(', ')}`);
    if (!ROOTS.includes(root)) this.fail(`a path begins with ${ROOTS.join(', ')}, not with '${root}'`, start);
    const end = this.position;
    while (this.step(start));
    if (this.template[this.position] !== '>') this.fail(this.unexpected());
    this.checkShape(root as Root, end);
    return { root: root as Root, steps: this.steps, path: this.template.slice(start, this.position++) };
  }

  /** Reads one step, if there is one. */
  private step(start: number): boolean {
    const char = this.template[this.position];
    if (char === '.') {
      const at = ++this.position;
      const name = this.identifier("'.' must be followed by a property name");
      if (FORBIDDEN.includes(name)) this.fail(`'${name}' cannot be part of a key`, at);
      this.steps.push({ kind: 'property', name, upTo: this.template.slice(start, this.position) });
      return true;
    }
    if (char !== '[') return false;
    const bracket = this.match(BRACKET);
    if (bracket === undefined) this.fail("'[' must be followed by a number or *, and then by ']'");
    const upTo = this.template.slice(start, this.position);
    this.steps.push(
      bracket[1] === undefined ? { kind: 'every', upTo } : { kind: 'index', index: Number(bracket[1]), upTo },
    );
    return true;
  }

  private checkShape(root: Root, end: number): void {
    const [first] = this.steps;
    if (root === 'args' && (first === undefined || first.kind === 'property'))
      this.fail("'args' must be followed by [0], [1], … or [*]", end);
    if (root === 'this' && first === undefined) this.fail("'this' alone is not a key: name a property of it", end);
    if ((root === 'class' || root === 'method') && first !== undefined)
      this.fail(`'${root}' is a name: nothing can follow it`, end);
  }

  private identifier(expected: string): string {
    const match = this.match(IDENTIFIER);
    if (match === undefined) this.fail(this.position < this.template.length ? expected : this.unexpected());
    return match[0];
  }

  private match(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.position;
    const match = pattern.exec(this.template);
    if (match === null) return undefined;
    this.position = pattern.lastIndex;
    return match;
  }

  private unexpected(): string {
    return this.position < this.template.length
      ? `'${this.template[this.position]}' is not expected here`
      : "the closing '>' is missing";
  }

  private fail(reason: string, at = this.position): never {
    throw new LockConfigurationError(
      `${this.where}: the key '${this.template}' is wrong at character ${at + 1}: ${reason}`,
    );
  }
}
