import { jest } from '@jest/globals';
import type { CommandLine } from '../../lib/cli/command-line.js';
import { release } from '../../lib/cli/commands/release.js';
import type { Output } from '../../lib/cli/output.js';
import { createLockService, MemoryBackend, MemoryStore, nodeRuntime } from '../../lib/core.js';

const store = new MemoryStore();
const open = () => createLockService({ backend: new MemoryBackend({ runtime: nodeRuntime, store }) });
const services = [open(), open(), open()];
afterAll(() => Promise.all(services.map((service) => service.close())));
const [ann, bob, locks] = services;

/** Runs the command, and `meanwhile` after it has read the lock and before it releases it. */
async function run(name: string, meanwhile: () => Promise<unknown>) {
  const results: unknown[] = [];
  const lines: string[] = [];
  const output = {
    isJson: false,
    change: (document: unknown, text: readonly string[]) => {
      results.push(document);
      lines.push(...text);
    },
    error: () => {},
    note: () => {},
  } as unknown as Output;
  const inspect = locks.inspect.bind(locks);
  jest.spyOn(locks, 'inspect').mockImplementationOnce(async (asked) => {
    const seen = await inspect(asked);
    await meanwhile();
    return seen;
  });
  const options = { yes: true, reason: 'stuck' } as CommandLine['options'];
  const exitCode = await release({ verb: 'release', name, options, locks, output } as never);
  return { exitCode, results, lines };
}

it('leaves a lock alone that changed hands after it was shown, and says so', async () => {
  const first = await ann.acquire('order:1');
  const waiting = bob.acquire('order:1');
  const refused = run('order:1', async () => {
    await first.release();
    await waiting;
  });
  await expect(refused).rejects.toThrow(/'order:1' is now held by somebody else\. Nothing was released/);
  const second = await waiting;
  expect(second.held).toBe(true);
  await second.release();
});

it('names only the owners that it removed', async () => {
  const [left, held] = await Promise.all([ann, bob].map((reader) => reader.acquire('order:2', { type: 'read' })));
  const { exitCode, results, lines } = await run('order:2', () => left.release());
  expect(exitCode).toBe(0);
  expect(results).toMatchObject([{ released: true, removed: [held.owner] }]);
  expect(lines.join('\n')).toContain(held.owner);
  expect(lines.join('\n')).not.toContain(left.owner);
  expect(await locks.isLocked('order:2')).toBe(false);
});
