import type { Step } from './steps.js';

/** A trace as the modules read it. What is not `name` or `steps` is about the whole trace. */
export interface AnyTrace {
  readonly name: string;
  readonly steps: readonly Step[];
}

type Content = string | number | boolean | readonly Content[];

/** The module that those of traces extend: TLC 2.18 has no way to read another format. */
export function traceDataModule(traces: readonly AnyTrace[]): string {
  const most = (field: string) =>
    Math.max(...traces.map((trace) => (field in trace ? (trace as unknown as Record<string, []>)[field].length : 0)));
  return `---- MODULE TraceData ----\nEXTENDS Integers\nMostOwners == ${most('processes')}\nMostCallers == ${most('callers')}\nTraces == <<\n${traces.map(text).join(',\n')}\n>>\n====\n`;
}

function text({ name: _, steps, ...whole }: AnyTrace): string {
  return `[${fields(whole)}, steps |-> <<\n${steps.map(stepText).join(',\n')}>>]`;
}

export function stepText(step: Step): string {
  return `[${fields(step)}]`;
}

function fields(record: object): string {
  return Object.entries(record)
    .map(([field, content]) => `${field} |-> ${value(content)}`)
    .join(', ');
}

function value(content: Content): string {
  if (typeof content === 'object') return `<<${content.map(value).join(', ')}>>`;
  return typeof content === 'boolean' ? String(content).toUpperCase() : JSON.stringify(content);
}
