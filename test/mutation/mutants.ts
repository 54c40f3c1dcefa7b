import ts from '@typescript/typescript6';

/** One change of one line. */
export interface Mutant {
  /** From the root of the repository. */
  readonly file: string;
  /** Where the old text begins and ends in the file. */
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
  /** What kind of change it is. */
  readonly kind: string;
}

const SWAPPED = new Map<string, string>([
  ['<', '<='],
  ['<=', '<'],
  ['>', '>='],
  ['>=', '>'],
  ['===', '!=='],
  ['!==', '==='],
  ['&&', '||'],
  ['||', '&&'],
  ['+', '-'],
  ['-', '+'],
  ['*', '/'],
  ['/', '*'],
  ['+=', '-='],
  ['-=', '+='],
]);

/** Every mutant of a TypeScript file. Texts, messages of errors and of the log, types and comments stay as they are. */
export function mutantsOfTypeScript(file: string, text: string): Mutant[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.ES2022, true);
  const found: Mutant[] = [];
  const add = (kind: string, start: number, end: number, replacement: string) => {
    if (!text.slice(start, end).includes('\n')) found.push({ file, start, end, replacement, kind });
  };
  const visit = (node: ts.Node): void => {
    if (isMessage(node, source) || ts.isTypeNode(node) || ts.isImportDeclaration(node)) return;
    if (ts.isBinaryExpression(node)) {
      const operator = node.operatorToken;
      const swapped = SWAPPED.get(operator.getText(source));
      const isText = [node.left, node.right].some(
        (side) => ts.isStringLiteralLike(side) || ts.isTemplateExpression(side),
      );
      if (swapped !== undefined && !isText) add('operator', operator.getStart(source), operator.end, swapped);
      if (operator.kind === ts.SyntaxKind.QuestionQuestionToken) add('fall-back', node.left.end, node.right.end, '');
    }
    if (ts.isPrefixUnaryExpression(node) && node.operator === ts.SyntaxKind.ExclamationToken)
      add('negation', node.getStart(source), node.operand.getStart(source), '');
    if (node.kind === ts.SyntaxKind.TrueKeyword) add('literal', node.getStart(source), node.end, 'false');
    if (node.kind === ts.SyntaxKind.FalseKeyword) add('literal', node.getStart(source), node.end, 'true');
    if (ts.isNumericLiteral(node))
      add('number', node.getStart(source), node.end, anotherNumber(node.text.replaceAll('_', '')));
    if (ts.isIfStatement(node)) add('condition', node.expression.getStart(source), node.expression.end, 'false');
    if (ts.isConditionalExpression(node))
      for (const value of ['true', 'false'])
        add('condition', node.condition.getStart(source), node.condition.end, value);
    if (ts.isAwaitExpression(node)) add('await', node.getStart(source), node.expression.getStart(source), '');
    if (ts.isPropertyAccessExpression(node) && node.expression.getText(source) === 'Math') {
      const other = { min: 'max', max: 'min', ceil: 'floor', floor: 'ceil' }[node.name.text];
      if (other !== undefined) add('rounding', node.name.getStart(source), node.name.end, other);
    }
    if (ts.isExpressionStatement(node) && !ts.isStringLiteralLike(node.expression) && !callsSuper(node.expression))
      add('statement', node.getStart(source), node.end, ';');
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** Errors, what is written to the log, and text: their wording is not what these tests are for. */
function isMessage(node: ts.Node, source: ts.SourceFile): boolean {
  if (ts.isStringLiteralLike(node) || ts.isTemplateExpression(node)) return true;
  if (ts.isNewExpression(node)) return /Error$/.test(node.expression.getText(source));
  if (ts.isConditionalExpression(node)) return isText(node) && hasWords(node);
  return ts.isCallExpression(node) && /\b(log|logger|warn|debug|describe\w*)\b/.test(node.expression.getText(source));
}

function isText(node: ts.Expression): boolean {
  if (ts.isConditionalExpression(node)) return isText(node.whenTrue) && isText(node.whenFalse);
  return ts.isStringLiteralLike(node) || ts.isTemplateExpression(node);
}

/** Text for people has spaces; keys, names and states have none. */
function hasWords(node: ts.Expression): boolean {
  if (ts.isConditionalExpression(node)) return hasWords(node.whenTrue) || hasWords(node.whenFalse);
  if (ts.isTemplateExpression(node))
    return [node.head, ...node.templateSpans.map((span) => span.literal)].some(({ text }) => text.includes(' '));
  return ts.isStringLiteralLike(node) && node.text.includes(' ');
}

function callsSuper(node: ts.Expression): boolean {
  return ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.SuperKeyword;
}

const LUA_SWAPPED = new Map<string, string>([
  ['<', '<='],
  ['<=', '<'],
  ['>', '>='],
  ['>=', '>'],
  ['==', '~='],
  ['~=', '=='],
  ['and', 'or'],
  ['or', 'and'],
  ['+', '-'],
  ['-', '+'],
  ['*', '/'],
  ['/', '*'],
  ['true', 'false'],
  ['false', 'true'],
]);
const LUA_TOKEN = /--\[\[[\s\S]*?\]\]|--.*|'[^'\n]*'|"[^"\n]*"|\.\.|[<>=~]=|[<>+\-*/]|\b\d+\b|\b[A-Za-z_]\w*\b/g;
const LUA_CALL = /^[ \t]*((?:redis\.)?call\([^\n]*\)|publish\w*\([^\n]*\)|expire\([^\n]*\))$/gm;

/** Every mutant of a script. Texts and comments stay as they are. */
export function mutantsOfLua(file: string, text: string): Mutant[] {
  const found: Mutant[] = [];
  const inKeys = /\b(KEYS|ARGV)\[$/;
  for (const { 0: token, index } of text.matchAll(LUA_TOKEN)) {
    const swapped = LUA_SWAPPED.get(token);
    const end = index + token.length;
    if (swapped !== undefined) found.push({ file, start: index, end, replacement: swapped, kind: 'operator' });
    if (token === 'not') found.push({ file, start: index, end: end + 1, replacement: '', kind: 'negation' });
    if (/^\d/.test(token) && !inKeys.test(text.slice(0, index)))
      found.push({ file, start: index, end, replacement: anotherNumber(token), kind: 'number' });
  }
  for (const match of text.matchAll(LUA_CALL)) {
    const start = match.index + match[0].length - match[1].length;
    found.push({ file, start, end: start + match[1].length, replacement: 'local _', kind: 'statement' });
  }
  for (const match of text.matchAll(/^[ \t]*if (.+) then$/gm)) {
    const start = match.index + match[0].indexOf('if ') + 3;
    found.push({ file, start, end: start + match[1].length, replacement: 'false', kind: 'condition' });
  }
  return found;
}

/** The next number. Of a large one, which is a time or a limit, nobody would see that: it becomes 0. */
function anotherNumber(text: string): string {
  return Number(text) < 10 ? String(Number(text) + 1) : '0';
}

export function mutate(text: string, { start, end, replacement }: Mutant): string {
  return text.slice(0, start) + replacement + text.slice(end);
}

/** `lib/engine/ask/attempt.ts:104: a < b` → `a <= b`. */
export function show(text: string, mutant: Mutant): string {
  const line = text.slice(0, mutant.start).split('\n').length;
  const of = (all: string) => all.split('\n')[line - 1].trim();
  return `${mutant.file}:${line}: \`${of(text)}\` → \`${of(mutate(text, mutant))}\``;
}
