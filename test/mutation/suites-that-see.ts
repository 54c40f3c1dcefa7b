import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { generatedPositionFor, LEAST_UPPER_BOUND, TraceMap } from '@jridgewell/trace-mapping';
import type { Mutant } from './mutants.js';

const { pathFor } = createRequire(import.meta.url)('../support/jest/typescript-cache.cjs') as {
  pathFor(path: string, source: string): string;
};

interface Range {
  readonly startOffset: number;
  readonly endOffset: number;
  readonly count: number;
}

interface Recorded {
  readonly suite: string;
  readonly scripts: readonly {
    readonly url: string;
    readonly functions: readonly { readonly functionName: string; readonly ranges: readonly Range[] }[];
  }[];
  readonly digests: readonly string[];
}

/** Which suites execute a line, from the records of `recording-environment.mjs`. */
export class SuitesThatSee {
  /** By the address of a file of lib/: what each suite executed of it. */
  private readonly executed = new Map<string, { suite: string; ranges: readonly (readonly Range[])[] }[]>();
  /** By the digest of a script: what sent it to a server. */
  private readonly senders = new Map<string, string[]>();
  /** By the name of a script: what ran it without a server, in its translation. */
  private readonly runners = new Map<string, string[]>();

  /**
   * @param root the checkout in which the suites ran
   * @param seconds by suite, of those that passed
   */
  constructor(
    private readonly root: string,
    records: string,
    private readonly seconds: ReadonlyMap<string, number>,
  ) {
    for (const file of readdirSync(records).filter((name) => name.endsWith('.json'))) {
      const { suite, scripts, digests } = JSON.parse(readFileSync(join(records, file), 'utf8')) as Recorded;
      const name = relative(root, suite);
      if (!seconds.has(name)) continue;
      for (const { url, functions } of scripts) {
        const ranges = functions.map((each) => each.ranges);
        append(this.executed, url.split('?')[0], { suite: name, ranges });
        if (!url.includes('/translated-scripts.generated.')) continue;
        for (const { functionName, ranges } of functions)
          if (ranges[0].count > 0) append(this.runners, functionName, name);
      }
      for (const digest of digests) append(this.senders, digest, name);
    }
  }

  /** The likeliest to fail first: the tests of the mutant's own folder, then the shortest. */
  of(mutant: Mutant): string[] {
    const suites = mutant.file.endsWith('.lua') ? this.sending(mutant) : this.executing(mutant);
    const own = basename(mutant.file).replace(/(-\d)?\.\w+$/, '');
    const folder = mutant.file.endsWith('.lua')
      ? 'test/backends/redis/scripts/'
      : mutant.file.replace(/^lib/, 'test').replace(/\/[^/]*$/, '/');
    const cost = (suite: string) => {
      const near = basename(suite).startsWith(own) ? 0.05 : suite.startsWith(folder) ? 0.2 : 1;
      return near * (this.seconds.get(suite) as number);
    };
    return [...suites].sort((one, other) => cost(one) - cost(other));
  }

  /** The likeliest suites, which take ten seconds together, and then the others, a minute of them at a time. */
  parts(suites: readonly string[]): string[][] {
    const parts: string[][] = [];
    for (let first = 0; first < suites.length; ) {
      const most = first === 0 ? 10 : 60;
      let end = first + 1;
      while (end < suites.length && this.duration(suites.slice(first, end + 1)) <= most) end++;
      parts.push(suites.slice(first, end));
      first = end;
    }
    return parts;
  }

  /** How long these suites took together, in seconds. */
  duration(suites: readonly string[]): number {
    return suites.reduce((sum, suite) => sum + (this.seconds.get(suite) as number), 0);
  }

  private executing({ file, start }: Mutant): Set<string> {
    const path = join(this.root, file);
    const text = readFileSync(path, 'utf8');
    const generated = pathFor(path, text);
    // Jest transpiles everything before it begins, so the cache was emptied since. No suite would seem to see the line.
    if (!existsSync(generated))
      throw new Error(`${generated} is gone: remove the folder, so that the suites are recorded again`);
    const offset = offsetIn(readFileSync(generated, 'utf8'), readFileSync(`${generated}.map`, 'utf8'), text, start);
    const suites = new Set<string>();
    for (const { suite, ranges } of this.executed.get(pathToFileURL(path).href) ?? []) {
      if (countAt(ranges, offset) > 0) suites.add(suite);
    }
    return suites;
  }

  private sending({ file }: Mutant): Set<string> {
    const text = readFileSync(join(this.root, 'lib/backends/redis/scripts.generated.ts'), 'utf8');
    const include = /scripts\/includes\/(.+)\.lua$/.exec(file)?.[1];
    const constant = include?.replace(/[-/](\w)/g, (_text, letter: string) => letter.toUpperCase());
    const scripts = this.withinTemplate(file) ?? [basename(file, '.lua')];
    const suites = new Set<string>();
    const sources = readScripts(text);
    for (const [name, { source, includes }] of sources) {
      if (constant === undefined ? !scripts.includes(name) : !includes.includes(constant)) continue;
      const sent = this.senders.get(createHash('sha1').update(source).digest('hex')) ?? [];
      for (const suite of [...sent, ...(this.runners.get(name) ?? [])]) suites.add(suite);
    }
    return suites;
  }

  /** The scripts that have this template, or undefined if the file is none. */
  private withinTemplate(file: string): string[] | undefined {
    const [, folder, template] = /^(.*)\/templates\/(.+)\.lua$/.exec(file) ?? [];
    if (template === undefined) return undefined;
    return readdirSync(join(this.root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.lua'))
      .filter((name) => readFileSync(join(this.root, folder, name), 'utf8').includes(`\n-- @template ${template}\n`))
      .map((name) => basename(name, '.lua'));
  }
}

/** The scripts as they are sent, and the constants that they are made of. */
function readScripts(text: string): Map<string, { source: string; includes: string[] }> {
  const entries = [
    ...text.matchAll(/^ {2}"([\w-]+)": ((?:`(?:[^`\\]|\\[\s\S])*`|\w+)(?: \+ (?:`(?:[^`\\]|\\[\s\S])*`|\w+))*),$/gm),
  ];
  const constants = text.slice(text.indexOf('const '), text.indexOf('export const'));
  const all = new Function(
    `${constants}\nreturn {${entries.map(([, name, expression]) => `${JSON.stringify(name)}: ${expression}`).join(',\n')}}`,
  )() as Record<string, string>;
  return new Map(
    entries.map(([, name, expression]) => [
      name,
      { source: all[name], includes: expression.replace(/`(?:[^`\\]|\\[\s\S])*`/g, '').match(/\w+/g) ?? [] },
    ]),
  );
}

/** Where a place of the TypeScript is in the JavaScript. */
function offsetIn(code: string, map: string, text: string, start: number): number {
  const before = text.slice(0, start).split('\n');
  const trace = new TraceMap(map);
  const wanted = { line: before.length, column: before[before.length - 1].length, source: trace.sources[0] as string };
  const found = generatedPositionFor(trace, wanted);
  const { line, column } =
    found.line === null ? generatedPositionFor(trace, { ...wanted, bias: LEAST_UPPER_BOUND }) : found;
  if (line === null) return 0;
  const lines = code.split('\n');
  return lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0) + column;
}

/** How often the innermost block around this place was executed. What runs when a file is loaded counts as once. */
function countAt(functions: readonly (readonly Range[])[], offset: number): number {
  let innermost: Range | undefined;
  let isModule = true;
  for (const ranges of functions) {
    for (const range of ranges) {
      if (offset < range.startOffset || offset >= range.endOffset) continue;
      const size = range.endOffset - range.startOffset;
      if (innermost === undefined || size <= innermost.endOffset - innermost.startOffset) {
        innermost = range;
        isModule = ranges[0].startOffset === 0;
      }
    }
  }
  return isModule ? 1 : (innermost?.count ?? 0);
}

function append<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const values = map.get(key);
  if (values === undefined) map.set(key, [value]);
  else values.push(value);
}
