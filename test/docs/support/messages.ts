import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync } from '@swc/core';
import { ROOT } from './markdown.js';

/** A text that the library logs or throws, with `…` for each inserted value. */
export interface Message {
  readonly file: string;
  readonly text: string;
}

interface Node {
  readonly type: string;
  readonly [key: string]: unknown;
}

/** The errors with a message for operators. Errors about the configuration say what to do themselves. */
const ERRORS = /^(Lock(?!Configuration)\w*Error|BackendError)$/;
/** `logger.warn(…)`, and `lose(held, why)`, whose last argument becomes part of a message. */
const METHODS = ['warn', 'error', 'lose'];

/**
 * All messages in lib/ that an operator can see, which excludes those of lib/testing. Messages with fewer than eight
 * letters of their own are left out, because they only combine other messages.
 */
export function readMessages(folder = join(ROOT, 'lib')): readonly Message[] {
  return readdirSync(folder, { recursive: true })
    .map(String)
    .filter((file) => file.endsWith('.ts') && !file.includes('.generated.') && !file.startsWith('testing/'))
    .flatMap((file) => messagesOf(readFileSync(join(folder, file), 'utf8')).map((text) => ({ file, text })))
    .filter(({ text }) => text.replace(/[^a-z]/gi, '').length >= 8);
}

/** The pieces of text that make up messages: string literals, and the text between the `${…}` of template literals. */
export function readPieces(folder = join(ROOT, 'lib')): ReadonlySet<string> {
  const pieces = new Set<string>();
  for (const file of readdirSync(folder, { recursive: true }).map(String)) {
    if (!file.endsWith('.ts') || file.includes('.generated.')) continue;
    walk(parse(readFileSync(join(folder, file), 'utf8')), (node) => {
      if (node.type === 'StringLiteral') pieces.add(String(node.value));
      if (node.type === 'TemplateElement') pieces.add(String(node.cooked));
    });
  }
  return pieces;
}

export function messagesOf(source: string): readonly string[] {
  const found: string[] = [];
  const constants = new Map<string, readonly string[]>();
  const textsOf = (node: Node | undefined): readonly string[] => textsIn(node, constants);
  walk(parse(source), (node) => {
    if (node.type === 'VariableDeclarator') {
      constants.set(nameOf(node.id as Node), textsOf(node.init as Node));
    } else if (node.type === 'NewExpression' && ERRORS.test(nameOf(node.callee as Node))) {
      found.push(...textsOf(argumentsOf(node)[0]));
    } else if (node.type === 'CallExpression' && METHODS.includes(nameOf((node.callee as Node).property as Node))) {
      found.push(...argumentsOf(node).flatMap(textsOf));
    }
  });
  return found;
}

function parse(source: string): Node {
  return parseSync(source, { syntax: 'typescript', decorators: true, target: 'es2022' }) as unknown as Node;
}

/** The literal texts that an expression can evaluate to; none if it contains no literals. */
function textsIn(node: Node | undefined, constants: ReadonlyMap<string, readonly string[]>): readonly string[] {
  switch (node?.type) {
    case 'StringLiteral':
      return [String(node.value)];
    case 'TemplateLiteral':
      return [(node.quasis as { cooked: string }[]).map(({ cooked }) => cooked).join('…')];
    case 'Identifier':
      return constants.get(String(node.value)) ?? [];
    // An entry of a table of texts.
    case 'ObjectExpression':
      return (node.properties as { value?: Node }[]).flatMap(({ value }) => textsIn(value, constants));
    case 'MemberExpression':
      return textsIn(node.object as Node, constants);
    case 'ParenthesisExpression':
      return textsIn(node.expression as Node, constants);
    case 'ConditionalExpression':
      return [...textsIn(node.consequent as Node, constants), ...textsIn(node.alternate as Node, constants)];
    case 'BinaryExpression': {
      const [left = '…'] = textsIn(node.left as Node, constants);
      const [right = '…'] = textsIn(node.right as Node, constants);
      return node.operator === '+' ? [left + right] : [];
    }
    default:
      return [];
  }
}

function nameOf(node: Node | undefined): string {
  return String(node?.value ?? '');
}

function argumentsOf(node: Node): readonly Node[] {
  return ((node.arguments ?? []) as { expression: Node }[]).map(({ expression }) => expression);
}

function walk(value: unknown, visit: (node: Node) => void): void {
  if (Array.isArray(value)) for (const one of value) walk(one, visit);
  else if (typeof value === 'object' && value !== null) {
    if ('type' in value) visit(value as Node);
    for (const child of Object.values(value)) walk(child, visit);
  }
}
