// Translates the Lua scripts to JavaScript, so that a server inside this process runs the same scripts as Redis
// (lib/backends/redis/in-process). Only the Lua that the scripts use is translated. Anything else stops the build with
// the file, the line and the construct.
//
// Redis runs a script with all that it includes as one chunk. Here each include is translated once: its functions and
// its variables belong to the module, and a script that includes it runs its statements. This works because scripts run
// one after the other, and because each of these names is declared once in a script.
import { parse } from 'luaparse';

/** Functions of Lua that return one value. */
const ONE_VALUE = new Set(['type', 'tonumber', 'tostring', 'error', 'ipairs', 'pairs']);
/** The others. */
const SEVERAL_VALUES = new Set(['pcall', 'unpack']);
/** The members of Lua's and Redis' libraries. True: returns several values. */
const LIBRARIES = {
  redis: { call: false, pcall: false, error_reply: false, sha1hex: false, REDIS_VERSION_NUM: false },
  math: { ceil: false, floor: false, max: false, min: false },
  string: { byte: false, char: false, find: true, format: false, gsub: true, match: true, sub: false },
  table: { concat: false, insert: false },
  cjson: { encode: false },
};
const GLOBALS = new Set(['KEYS', 'ARGV', ...ONE_VALUE, ...SEVERAL_VALUES, ...Object.keys(LIBRARIES)]);
const COMPARISONS = new Set(['==', '~=', '<', '>', '<=', '>=']);
const RESERVED = new Set(
  'arguments await break case catch class const continue debugger default delete do else enum eval export extends false finally for function if implements import in instanceof interface let new null package private protected public return static super switch this throw true try typeof undefined var void while with yield lua'.split(
    ' ',
  ),
);

/**
 * @param includes name → { path, text }
 * @param scripts name → { path, text, includes: [{ line, name }] }, where `line` says where a script includes it
 * @returns the text of a function `(lua) => ({ [name]: (KEYS, ARGV) => reply })`
 */
export function translateScripts(includes, scripts) {
  const chunks = new Map([...includes].map(([name, include]) => [name, new Chunk(include)]));
  const shared = new SharedNames(chunks.values());
  const functions = [...chunks].map(([name, chunk]) => new IncludeWriter(chunk, shared, name).write());
  const entries = [...scripts].map(([name, script]) =>
    new ScriptWriter(new Chunk(script), shared, chunks, name).write(),
  );
  return `(lua) => {\n${shared.declare()}${functions.join('')}  return {\n${entries.join('')}  };\n}`;
}

/** A Lua file, parsed, and the names of its outermost scope. */
class Chunk {
  constructor({ path, text, includes = [] }) {
    this.path = path;
    this.text = text;
    this.includes = includes;
    try {
      this.body = parse(text, {
        luaVersion: '5.1',
        scope: true,
        locations: true,
        ranges: true,
        comments: false,
        encodingMode: 'none',
      }).body;
    } catch (error) {
      throw new Error(`lib/backends/redis/scripts/${path}: ${error.message}`);
    }
    /** Name → 'function', 'constant' or 'variable'. */
    this.locals = new Map();
    for (const statement of this.body) {
      if (statement.type === 'FunctionDeclaration') this.declare(statement, statement.identifier.name, 'function');
      if (statement.type !== 'LocalStatement') continue;
      const kind = isConstant(statement) ? 'constant' : 'variable';
      for (const { name } of statement.variables) this.declare(statement, name, kind);
    }
    /** What it uses and does not declare. */
    this.free = new Set(freeNames(this.body).filter((name) => !GLOBALS.has(name) && !this.locals.has(name)));
  }

  /** The parser does not say so. The parentheses of a call follow a name, an index, a call or a string. */
  isInParentheses({ range: [from, to] }) {
    const before = /([\w\])'"]*)\s*\(\s*$/.exec(this.text.slice(0, from));
    if (before === null || !/^\s*\)/.test(this.text.slice(to))) return false;
    return before[1] === '' || /^(?:and|elseif|if|in|not|or|return|until|while)$/.test(before[1]);
  }

  declare(node, name, kind) {
    if (this.locals.has(name)) this.fail(node, `a second local ${name}`);
    this.locals.set(name, kind);
  }

  fail(node, construct) {
    throw new Error(`lib/backends/redis/scripts/${this.path}:${node.loc.start.line}: ${construct} is not translated.`);
  }
}

/** A name in capitals with a literal value. */
function isConstant({ variables, init }) {
  if (variables.length !== init.length || !variables.every(({ name }) => /^[A-Z_\d]+$/.test(name))) return false;
  return init.every(({ type }) => type === 'NumericLiteral' || type === 'StringLiteral');
}

function freeNames(node) {
  if (node === null || typeof node !== 'object') return [];
  if (Array.isArray(node)) return node.flatMap(freeNames);
  if (node.type === 'Identifier') return node.isLocal === false ? [node.name] : [];
  if (node.type === 'MemberExpression') return freeNames(node.base);
  if (node.type === 'TableKeyString') return freeNames(node.value);
  return Object.entries(node).flatMap(([key, value]) => (key === 'loc' ? [] : freeNames(value)));
}

/** The names that includes declare, or expect from the script that includes them. */
class SharedNames {
  constructor(chunks) {
    this.kinds = new Map();
    for (const { locals } of chunks) for (const [name, kind] of locals) this.add(name, kind);
    for (const { free } of chunks) for (const name of free) if (!this.kinds.has(name)) this.kinds.set(name, 'variable');
  }

  add(name, kind) {
    const former = this.kinds.get(name);
    if (former !== undefined && (former !== 'variable' || kind !== 'variable'))
      throw new Error(`Two includes of lib/backends/redis/scripts declare ${name}. Rename one of them.`);
    this.kinds.set(name, kind);
  }

  declare() {
    const variables = [...this.kinds].filter(([, kind]) => kind === 'variable').map(([name]) => nameInJs(name));
    return variables.length === 0 ? '' : `  let ${variables.sort().join(', ')};\n`;
  }
}

const nameInJs = (name) => (RESERVED.has(name) ? `${name}_` : name);

/** Writes the statements of one chunk. */
class Writer {
  constructor(chunk, shared) {
    this.chunk = chunk;
    this.shared = shared;
    this.serial = 0;
    this.temporaries = [];
    /** Local functions that return one value, by their names in JavaScript. */
    this.oneValue = shared.oneValue ??= new Set();
  }

  fail(node, construct) {
    this.chunk.fail(node, construct);
  }

  block(body, outer) {
    const scope = new Map(outer);
    return body.map((node) => this.statement(node, scope)).join('\n');
  }

  /** A name that nothing around it has, so that a second `local x` may use the first one in its value. */
  declare(scope, name) {
    const taken = scope.has(name) || this.shared.kinds.has(name) || name === 'KEYS' || name === 'ARGV';
    const own = taken ? `${name}$${++this.serial}` : nameInJs(name);
    scope.set(name, own);
    return own;
  }

  /** A block with its own temporaries, as a function has. */
  inFunction(write) {
    const outer = this.temporaries;
    this.temporaries = [];
    const code = write();
    const declared = this.temporaries.length > 0 ? `let ${this.temporaries.join(', ')};\n` : '';
    this.temporaries = outer;
    return declared + code;
  }

  temporary() {
    const name = `t$${++this.serial}`;
    this.temporaries.push(name);
    return name;
  }

  statement(node, scope) {
    switch (node.type) {
      case 'LocalStatement':
        return this.local(node, scope);
      case 'AssignmentStatement':
        return this.assignment(node, scope);
      case 'CallStatement':
        return `${this.call(node.expression, scope)};`;
      case 'ReturnStatement':
        return `return ${this.returned(node, scope)};`;
      case 'BreakStatement':
        return 'break;';
      case 'IfStatement':
        return node.clauses.map((clause) => this.clause(clause, scope)).join(' ');
      case 'WhileStatement':
        return `while (${this.truth(node.condition, scope)}) {\n${this.block(node.body, scope)}\n}`;
      case 'ForNumericStatement':
        return this.numericFor(node, scope);
      case 'ForGenericStatement':
        return this.genericFor(node, scope);
      case 'FunctionDeclaration':
        return this.localFunction(node, scope);
      default:
        return this.fail(node, node.type);
    }
  }

  local(node, scope) {
    const { variables, init } = node;
    const isShared = this.chunk.body.includes(node) && variables.some(({ name }) => this.shared.kinds.has(name));
    if (isShared) return this.sharedLocal(node, scope);
    if (variables.length === 1 && init.length <= 1) {
      const value = init.length === 1 ? this.value(init[0], scope) : 'undefined';
      const alias = init.length === 1 && this.isOneValueFunction(init[0], scope);
      const name = this.declare(scope, variables[0].name);
      if (alias) this.oneValue.add(name);
      return `let ${name} = ${value};`;
    }
    if (init.length === 0) return `let ${variables.map(({ name }) => this.declare(scope, name)).join(', ')};`;
    const values = this.list(init, scope);
    return `let [${variables.map(({ name }) => this.declare(scope, name)).join(', ')}] = ${values};`;
  }

  /** What includes declare or expect is the module's, and the rest is the script's own. */
  sharedLocal({ variables, init }, scope) {
    const own = variables
      .filter(({ name }) => !this.shared.kinds.has(name))
      .map(({ name }) => this.declare(scope, name));
    const declared = own.length > 0 ? `let ${own.join(', ')};\n` : '';
    const names = variables.map(({ name }) => scope.get(name) ?? nameInJs(name));
    if (init.length === 0) return `${declared}${names.join(' = ')} = undefined;`;
    if (names.length === 1) return `${names[0]} = ${this.value(init[0], scope)};`;
    return `${declared}[${names.join(', ')}] = ${this.list(init, scope)};`;
  }

  assignment(node, scope) {
    const { variables, init } = node;
    if (variables.length === 1 && init.length === 1)
      return `${this.assign(variables[0], this.value(init[0], scope), scope)};`;
    const values = this.temporary();
    const each = variables.map((variable, n) => this.assign(variable, `${values}[${n}]`, scope));
    return `${values} = ${this.list(init, scope)}; ${each.join('; ')};`;
  }

  assign(target, value, scope) {
    if (target.type === 'Identifier') return `${this.variable(target, scope)} = ${value}`;
    return `${this.value(target.base, scope)}.set(${this.key(target, scope)}, ${value})`;
  }

  clause(clause, scope) {
    const body = `{\n${this.block(clause.body, scope)}\n}`;
    if (clause.type === 'ElseClause') return `else ${body}`;
    return `${clause.type === 'IfClause' ? '' : 'else '}if (${this.truth(clause.condition, scope)}) ${body}`;
  }

  numericFor(node, scope) {
    const inner = new Map(scope);
    const [from, to] = [node.start, node.end].map((limit) => `lua.num(${this.value(limit, scope)})`);
    const step = node.step?.type === 'UnaryExpression' ? -node.step.argument.value : (node.step?.value ?? 1);
    if (typeof step !== 'number' || Number.isNaN(step)) this.fail(node, 'a for loop whose step is no number');
    const last = `last$${++this.serial}`;
    const counter = this.declare(inner, node.variable.name);
    const holds = step > 0 ? '<=' : '>=';
    return `for (let ${counter} = ${from}, ${last} = ${to}; ${counter} ${holds} ${last}; ${counter} += ${step}) {\n${this.block(node.body, inner)}\n}`;
  }

  genericFor(node, scope) {
    const [iterator] = node.iterators;
    const called = iterator.type === 'CallExpression' && iterator.base.name;
    if (node.iterators.length > 1 || (called !== 'ipairs' && called !== 'pairs'))
      this.fail(node, 'a for loop over anything but ipairs() or pairs()');
    const pairs = this.value(iterator, scope);
    const inner = new Map(scope);
    const names = node.variables.map(({ name }) => this.declare(inner, name));
    return `for (const [${names.join(', ')}] of ${pairs}) {\n${this.block(node.body, inner)}\n}`;
  }

  localFunction(node, scope) {
    if (!node.isLocal || node.identifier === null) this.fail(node, 'a function that is not local');
    const name = this.declare(scope, node.identifier.name);
    if (returnsOneValue(node)) this.oneValue.add(name);
    return `const ${name} = ${this.lambda(node, scope)};`;
  }

  lambda(node, scope) {
    const inner = new Map(scope);
    const parameters = node.parameters.map((parameter) => {
      if (parameter.type === 'VarargLiteral') return '...varargs';
      return this.declare(inner, parameter.name);
    });
    return `(${parameters.join(', ')}) => {\n${this.inFunction(() => this.block(node.body, inner))}\n}`;
  }

  /** One value as it is, and several as an array, which no value of Lua is. */
  returned({ arguments: values }, scope) {
    if (values.length === 0) return '[]';
    if (values.length === 1)
      return this.mayBeSeveral(values[0], scope) ? this.several(values[0], scope) : this.value(values[0], scope);
    return this.list(values, scope);
  }

  /** An array with the values of all expressions. Only the last one may have several. */
  list(nodes, scope) {
    return `[${this.listed(nodes, scope)}]`;
  }

  listed(nodes, scope) {
    return nodes
      .map((node, index) => {
        if (index < nodes.length - 1 || !this.mayBeSeveral(node, scope)) return this.value(node, scope);
        return node.type === 'VarargLiteral' ? '...varargs' : `...lua.all(${this.several(node, scope)})`;
      })
      .join(', ');
  }

  mayBeSeveral(node, scope) {
    if (this.chunk.isInParentheses(node)) return false; // which cut it to one
    if (node.type === 'VarargLiteral') return true;
    return isCall(node) && !this.isOneValueFunction(node.base, scope);
  }

  several(node, scope) {
    return node.type === 'VarargLiteral' ? 'varargs' : this.call(node, scope);
  }

  isOneValueFunction(node, scope) {
    if (node.type === 'Identifier') {
      if (!scope.has(node.name) && !this.shared.kinds.has(node.name)) return ONE_VALUE.has(node.name);
      return this.oneValue.has(scope.get(node.name) ?? nameInJs(node.name));
    }
    const library = node.type === 'MemberExpression' && this.libraryOf(node, scope);
    return Boolean(library) && LIBRARIES[library][node.identifier.name] === false;
  }

  /** `string` of `string.find`, if that is Lua's own. */
  libraryOf({ base, identifier, loc }, scope) {
    if (base.type !== 'Identifier' || scope.has(base.name) || this.shared.kinds.has(base.name)) return undefined;
    const members = LIBRARIES[base.name];
    if (members === undefined) return undefined;
    if (!Object.hasOwn(members, identifier.name)) this.fail({ loc }, `${base.name}.${identifier.name}`);
    return base.name;
  }

  call(node, scope) {
    if (node.type !== 'CallExpression') this.fail(node, `${node.type}, a call without parentheses`);
    return `${this.value(node.base, scope)}(${this.listed(node.arguments, scope)})`;
  }

  truth(node, scope) {
    if (node.type === 'LogicalExpression')
      return `(${this.truth(node.left, scope)} ${node.operator === 'and' ? '&&' : '||'} ${this.truth(node.right, scope)})`;
    return isBoolean(node) ? this.value(node, scope) : `lua.isTrue(${this.value(node, scope)})`;
  }

  /** An expression as one value. */
  value(node, scope) {
    switch (node.type) {
      case 'StringLiteral':
        return JSON.stringify(textOf(node.raw));
      case 'NumericLiteral':
      case 'BooleanLiteral':
        return String(node.value);
      case 'NilLiteral':
        return 'undefined';
      case 'VarargLiteral':
        return 'varargs[0]';
      case 'Identifier':
        return this.variable(node, scope);
      case 'IndexExpression':
        return `lua.index(${this.value(node.base, scope)}, ${this.value(node.index, scope)})`;
      case 'MemberExpression':
        if (node.indexer !== '.') this.fail(node, `the method ${node.identifier.name}`);
        if (this.libraryOf(node, scope)) return `lua.${node.base.name}.${node.identifier.name}`;
        return `lua.index(${this.value(node.base, scope)}, ${this.key(node, scope)})`;
      case 'CallExpression':
      case 'StringCallExpression':
      case 'TableCallExpression': {
        const call = this.call(node, scope);
        return this.isOneValueFunction(node.base, scope) ? call : `lua.first(${call})`;
      }
      case 'FunctionDeclaration':
        return this.lambda(node, scope);
      case 'UnaryExpression':
        return this.unary(node, scope);
      case 'LogicalExpression':
        return this.logical(node, scope);
      case 'BinaryExpression':
        return this.binary(node, scope);
      case 'TableConstructorExpression':
        return this.table(node, scope);
      default:
        return this.fail(node, node.type);
    }
  }

  variable({ name, loc }, scope) {
    if (scope.has(name)) return scope.get(name);
    if (this.shared.kinds.has(name)) return nameInJs(name);
    if (GLOBALS.has(name)) return `lua.${name}`;
    return this.fail({ loc }, `the global ${name}`);
  }

  key(node, scope) {
    return node.type === 'MemberExpression' ? JSON.stringify(node.identifier.name) : this.value(node.index, scope);
  }

  unary(node, scope) {
    const argument = this.value(node.argument, scope);
    if (node.operator === 'not') return `!${this.truth(node.argument, scope)}`;
    if (node.operator === '-')
      return node.argument.type === 'NumericLiteral' ? `-${argument}` : `-lua.num(${argument})`;
    return `lua.length(${argument})`;
  }

  logical(node, scope) {
    if (isBoolean(node.left) && isBoolean(node.right)) return this.truth(node, scope);
    const left = this.value(node.left, scope);
    const right = this.value(node.right, scope);
    const former = this.temporary();
    const isTrue = `lua.isTrue(${former} = ${left})`;
    return node.operator === 'and' ? `(${isTrue} ? ${right} : ${former})` : `(${isTrue} ? ${former} : ${right})`;
  }

  binary(node, scope) {
    const [left, right] = [this.value(node.left, scope), this.value(node.right, scope)];
    switch (node.operator) {
      case '==':
        return `(${left} === ${right})`;
      case '~=':
        return `(${left} !== ${right})`;
      case '..':
        return `(lua.text(${left}) + lua.text(${right}))`;
      case '<':
        return `lua.isLess(${left}, ${right})`;
      case '>':
        return `lua.isLess(${right}, ${left})`;
      case '<=':
        return `lua.isAtMost(${left}, ${right})`;
      case '>=':
        return `lua.isAtMost(${right}, ${left})`;
      case '%':
        return `lua.mod(${left}, ${right})`;
      case '+':
      case '-':
      case '*':
      case '/':
        return `(lua.num(${left}) ${node.operator} lua.num(${right}))`;
      default:
        return this.fail(node, `the operator ${node.operator}`);
    }
  }

  table({ fields }, scope) {
    const listed = fields.filter(({ type }) => type === 'TableValue').map(({ value }) => value);
    const named = fields
      .filter(({ type }) => type !== 'TableValue')
      .map(({ type, key, value }) => {
        const name = type === 'TableKeyString' ? JSON.stringify(key.name) : this.value(key, scope);
        return `[${name}, ${this.value(value, scope)}]`;
      });
    return `lua.newTable(${this.list(listed, scope)}${named.length > 0 ? `, [${named.join(', ')}]` : ''})`;
  }
}

/** Writes an include: its functions, and a function with its other statements. */
class IncludeWriter extends Writer {
  constructor(chunk, shared, name) {
    super(chunk, shared);
    this.name = name;
  }

  write() {
    const definitions = [];
    const statements = [];
    const scope = new Map();
    // First, because functions call each other.
    for (const node of this.chunk.body) {
      if (node.type === 'FunctionDeclaration' && returnsOneValue(node))
        this.oneValue.add(nameInJs(node.identifier.name));
    }
    for (const node of this.chunk.body) {
      if (node.type === 'FunctionDeclaration') definitions.push(this.sharedFunction(node, scope));
      else if (node.type === 'LocalStatement' && isConstant(node)) definitions.push(this.constants(node));
      else statements.push(node);
    }
    const code = this.inFunction(() => statements.map((node) => this.statement(node, scope)).join('\n'));
    this.chunk.runs = statements.length > 0 ? `run_${this.name.replace(/\W/g, '_')}` : undefined;
    this.chunk.mayReturn = statements.some(containsReturn);
    if (statements.length > 0) definitions.push(`const ${this.chunk.runs} = () => {\n${code}\n};\n`);
    return definitions.join('');
  }

  sharedFunction(node, scope) {
    return `const ${nameInJs(node.identifier.name)} = ${this.lambda(node, scope)};\n`;
  }

  constants({ variables, init }) {
    return variables.map(({ name }, n) => `const ${nameInJs(name)} = ${this.value(init[n], new Map())};\n`).join('');
  }
}

/** Writes a script as `name: () => { … }`. */
class ScriptWriter extends Writer {
  constructor(chunk, shared, chunks, name) {
    super(chunk, shared);
    this.name = name;
    this.included = chunk.includes.map(({ line, name: include }) => ({ line, chunk: chunks.get(include) }));
    /** The shared names that this script meets. Its other names are its own, whatever includes of other scripts use. */
    const met = new Map();
    for (const { chunk: include } of this.included) {
      for (const [local, kind] of include.locals) met.set(local, kind);
      for (const free of include.free) if (!met.has(free)) met.set(free, shared.kinds.get(free));
    }
    this.shared = { kinds: met, oneValue: shared.oneValue };
    this.checkDeclaredOnce();
  }

  checkDeclaredOnce() {
    const declared = new Set(this.chunk.locals.keys());
    for (const { chunk } of this.included) {
      for (const name of chunk.locals.keys()) {
        if (declared.has(name))
          throw new Error(`lib/backends/redis/scripts/${this.chunk.path}: declares ${name}, as ${chunk.path} does.`);
        declared.add(name);
      }
    }
  }

  write() {
    const scope = new Map();
    const code = this.inFunction(() => {
      const parts = this.chunk.body.map((node) => ({
        line: node.loc.start.line,
        text: () => this.statement(node, scope),
      }));
      const runs = this.included.map(({ line, chunk }) => ({ line, text: () => runOf(chunk) }));
      return [...runs, ...parts]
        .sort((a, b) => a.line - b.line)
        .map(({ text }) => text())
        .filter((text) => text !== '')
        .join('\n');
    });
    return `${JSON.stringify(this.name)}: () => {\n${code}\n},\n`;
  }
}

function runOf({ runs, mayReturn }) {
  if (runs === undefined) return '';
  return mayReturn ? `{ const reply = ${runs}(); if (reply !== undefined) return reply; }` : `${runs}();`;
}

const isCall = ({ type }) =>
  type === 'CallExpression' || type === 'StringCallExpression' || type === 'TableCallExpression';

function isBoolean(node) {
  if (node.type === 'LogicalExpression') return isBoolean(node.left) && isBoolean(node.right);
  if (node.type === 'UnaryExpression') return node.operator === 'not';
  return node.type === 'BooleanLiteral' || (node.type === 'BinaryExpression' && COMPARISONS.has(node.operator));
}

/** Whether each `return` of a function has one value that is no call, so that callers need not ask. */
function returnsOneValue({ body }) {
  return returnsOf(body).every(
    ({ arguments: values }) => values.length === 1 && !isCall(values[0]) && values[0].type !== 'VarargLiteral',
  );
}

function returnsOf(node) {
  if (node === null || typeof node !== 'object') return [];
  if (Array.isArray(node)) return node.flatMap(returnsOf);
  if (node.type === 'FunctionDeclaration') return [];
  if (node.type === 'ReturnStatement') return [node];
  return Object.entries(node).flatMap(([key, value]) => (key === 'loc' ? [] : returnsOf(value)));
}

const containsReturn = (node) => returnsOf(node).length > 0;

const ESCAPES = { n: '\n', r: '\r', t: '\t', a: '\x07', b: '\b', f: '\f', v: '\v' };

/** The text of a quoted string. */
function textOf(raw) {
  return raw
    .slice(1, -1)
    .replace(/\\(\d{1,3}|.)/gs, (_escape, code) =>
      /^\d/.test(code) ? String.fromCharCode(Number(code)) : (ESCAPES[code] ?? code),
    );
}
