import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Operation } from './operations-of.js';

/**
 * @param program what `go build` has made of porcupine/
 * @returns a verdict for each: ok, illegal or unknown
 */
export async function askPorcupine(
  program: string,
  cases: readonly { readonly operations: readonly Operation[] }[],
): Promise<string[]> {
  const child = spawn(program, { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  for (const { operations } of cases) child.stdin.write(`${JSON.stringify(operations)}\n`);
  child.stdin.end();
  const answers: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) answers.push(line);
  await ended;
  return answers;
}
