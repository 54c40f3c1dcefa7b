import type { LockTrace, OwnerId, Step } from './trace-of-lock.js';

/** The module that `Trace.tla` extends: TLC 2.18 has no way to read another format. */
export function traceDataModule(traces: readonly Pick<LockTrace, 'owners' | 'steps'>[]): string {
  return `---- MODULE TraceData ----\nEXTENDS Integers\nTraces == <<\n${traces.map(text).join(',\n')}\n>>\n====\n`;
}

function text({ owners, steps }: Pick<LockTrace, 'owners' | 'steps'>): string {
  return `[owners |-> {${owners.map(value).join(', ')}}, steps |-> <<\n${steps.map(stepText).join(',\n')}>>]`;
}

export function stepText(step: Step): string {
  return `[${Object.entries(step)
    .map(([field, content]) => `${field} |-> ${value(content)}`)
    .join(', ')}]`;
}

function value(content: string | number | boolean | OwnerId | readonly number[]): string {
  if (typeof content === 'object') return `<<${content.join(', ')}>>`;
  return typeof content === 'boolean' ? String(content).toUpperCase() : JSON.stringify(content);
}
