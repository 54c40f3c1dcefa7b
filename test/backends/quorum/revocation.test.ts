import { BackendError } from '../../../lib/backends/lock-backend.js';
import { QuorumBackend } from '../../../lib/backends/quorum/quorum-backend.js';
import { MemoryBackend } from '../../../lib/backends/redis/in-process/memory-backend.js';
import { MemoryStore } from '../../../lib/backends/redis/in-process/memory-store.js';
import { openVirtualWorld } from '../../support/lock-world.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';
import { latch } from '../../support/section.js';
import {
  answerAfter,
  answerLost,
  type Disturbance,
  refused,
  WatchedBackend,
} from '../../support/watched/watched-backend.js';

const KEY = 'lock:order';

function openQuorum(runtime = new VirtualRuntime()) {
  const nodes = Array.from(
    { length: 3 },
    () => new WatchedBackend(new MemoryBackend({ runtime, store: new MemoryStore() }), runtime),
  );
  const quorum = new QuorumBackend({ nodes, runtime });
  const owners = async (key = KEY) => {
    const states = await Promise.all(nodes.map((node) => node.inspect(key)));
    return states.map((state) => state.owners.map(({ owner }) => owner));
  };
  return { runtime, nodes, quorum, owners };
}

describe('an acquisition that a majority did not grant', () => {
  const request = (owner: string) =>
    ({
      key: KEY,
      type: 'reentrant',
      owner,
      leaseTime: 30_000,
      reserve: 0,
      waiterTimeout: 0,
    }) as const;

  it('is revoked on a node that has executed it without an answer, when the others were busy', async () => {
    const { runtime, nodes, quorum, owners } = openQuorum();
    for (const node of nodes.slice(1)) await node.acquire(request('other:1'));
    nodes[0].disturb(answerLost, 'acquire');
    expect(await runtime.until(quorum.acquire(request('own:1')))).toMatchObject({ acquired: false });
    await runtime.advance(1_000);
    expect(await owners()).toEqual([[], ['other:1'], ['other:1']]);
    await quorum.close();
  });

  it('is revoked on all nodes when most of them gave no answer', async () => {
    const { runtime, nodes, quorum, owners } = openQuorum();
    for (const node of nodes.slice(1)) node.disturb(answerLost, 'acquire');
    await expect(runtime.until(quorum.acquire(request('own:1')))).rejects.toThrow(BackendError);
    await runtime.advance(1_000);
    expect(await owners()).toEqual([[], [], []]);
    await quorum.close();
  });

  it('is revoked on a node that executes it only later', async () => {
    const { runtime, nodes, quorum, owners } = openQuorum();
    for (const node of nodes.slice(1)) await node.acquire(request('other:1'));
    const late: Disturbance = async (execute) => {
      runtime.timer(800, () => void execute());
      throw new BackendError('no answer', 'unavailable', 'unknown', { validUntil: runtime.wall() + 1_000 });
    };
    nodes[0].disturb(late, 'acquire');
    expect(await runtime.until(quorum.acquire(request('own:1')))).toMatchObject({ acquired: false });
    await runtime.advance(900);
    expect(nodes[0].count('release')).toBeGreaterThan(0);
    await runtime.advance(4_000);
    expect(await owners()).toEqual([[], ['other:1'], ['other:1']]);
    await quorum.close();
  });

  it.each(['busy', 'free'])('is revoked on a %s node that may still execute a first copy of it', async (found) => {
    const { runtime, nodes, quorum, owners } = openQuorum();
    for (const node of nodes) await node.acquire(request('other:1'));
    const release = () => nodes[0].release({ key: KEY, type: 'reentrant', owner: 'other:1' });
    if (found === 'free') await release();
    const sentTwice: Disturbance = async (execute) => {
      runtime.timer(500, () => void execute());
      return { ...(await execute()), validUntil: runtime.wall() + 1_000 };
    };
    nodes[0].disturb(sentTwice, 'acquire');
    expect(await runtime.until(quorum.acquire(request('own:1')))).toMatchObject({ acquired: false, spent: true });
    nodes[0].heal();
    await runtime.advance(400);
    await release();
    await runtime.advance(5_000);
    expect(await owners()).toEqual([[], ['other:1'], ['other:1']]);
    await quorum.close();
  });
});

describe('a lock of which a node may execute the acquisition once more', () => {
  const kinds = ['was asked twice', 'has not answered'] as const;

  it.each(kinds)('is released there until that is over, where the node %s', async (kind) => {
    const { runtime, nodes, quorum, owners } = openQuorum();
    const own = { key: KEY, type: 'reentrant', owner: 'own:1' } as const;
    nodes[0].disturb(async (execute) => {
      const validUntil = runtime.wall() + 1_000;
      runtime.timer(500, () => void execute());
      const reply = await execute();
      if (kind === 'has not answered') throw new BackendError('no answer', 'unavailable', 'unknown', { validUntil });
      return { ...reply, validUntil };
    }, 'acquire');
    const asked = { ...own, leaseTime: 30_000, reserve: 0, waiterTimeout: 0 };
    expect(await runtime.until(quorum.acquire(asked))).toMatchObject({ acquired: true });
    nodes[0].heal();
    expect(await runtime.until(quorum.release(own))).toMatchObject({ released: true });
    await runtime.advance(5_000);
    expect(await owners()).toEqual([[], [], []]);
    const releases = nodes[0].count('release');
    await runtime.advance(10_000);
    expect(nodes[0].count('release')).toBe(releases);
    expect(nodes[1].count('release')).toBe(1);
    await quorum.close();
  });
});

describe('a lock that is released while it is renewed', () => {
  it('is not restored on a node that has lost it', async () => {
    const { runtime, nodes, quorum, owners } = openQuorum();
    const own = { key: KEY, type: 'reentrant', owner: 'own:1', leaseTime: 30_000 } as const;
    await runtime.until(quorum.acquire({ ...own, reserve: 0, waiterTimeout: 0 }));
    await nodes[0].forceRelease(KEY);
    const others = latch();
    for (const node of nodes.slice(1)) node.disturb(answerAfter(others.promise), 'renew');
    const renewed = quorum.renew(own);
    await runtime.settle();
    const released = quorum.release(own);
    await runtime.settle();
    others.open();
    expect(await runtime.until(renewed)).toBe(true);
    expect(await runtime.until(released)).toMatchObject({ released: true });
    await runtime.advance(1_000);
    expect(await owners()).toEqual([[], [], []]);
    await quorum.close();
  });
});

describe('a lock with a long lease on a quorum', () => {
  const world = openVirtualWorld();

  it('is released on a node that was away for a minute when it was released', async () => {
    const { runtime, nodes, quorum, owners } = openQuorum(world.runtime);
    const { locks } = await world.process({ client: { backend: quorum, id: 'own' } });
    const lease = await runtime.until(locks.acquire('order', { leaseTime: '10m' }));
    const key = locks.engine.services.keyOf('order', 'test');
    nodes[2].disturb(refused, 'release');
    await runtime.until(lease.release());
    await runtime.advance(60_000);
    expect(await owners(key)).toEqual([[], [], [lease.owner]]);
    nodes[2].heal();
    await runtime.advance(5_000);
    expect(await owners(key)).toEqual([[], [], []]);
  });
});

describe('a write lock on a quorum', () => {
  it('leaves no place in the line of a node that is busy, and answers after the others', async () => {
    const { runtime, nodes, quorum } = openQuorum();
    const reader = {
      key: KEY,
      type: 'read',
      owner: 'other:1',
      leaseTime: 30_000,
      reserve: 0,
      waiterTimeout: 0,
    } as const;
    await nodes[2].acquire(reader);
    const answer = latch();
    nodes[2].disturb(answerAfter(answer.promise), 'acquire');
    const writer = { ...reader, type: 'write', owner: 'own:1', waiterTimeout: 20_000 } as const;
    expect(await runtime.until(quorum.acquire(writer))).toMatchObject({ acquired: true });
    nodes[2].heal();
    answer.open();
    await runtime.settle();
    expect(await nodes[2].acquire({ ...reader, owner: 'other:2' })).toMatchObject({ acquired: true });
    await quorum.close();
  });
});

describe('a read lock on a quorum', () => {
  it('is restored on a node that has lost it, although a writer waits there', async () => {
    const { runtime, nodes, quorum, owners } = openQuorum();
    const reader = { key: KEY, type: 'read', owner: 'own:1', leaseTime: 30_000 } as const;
    await runtime.until(quorum.acquire({ ...reader, reserve: 0, waiterTimeout: 0 }));
    const writer = { ...reader, type: 'write', owner: 'other:1', reserve: 0, waiterTimeout: 60_000 } as const;
    for (const node of nodes) expect(await node.acquire(writer)).toMatchObject({ acquired: false });
    await nodes[0].forceRelease(KEY);
    expect(await runtime.until(quorum.renew(reader))).toBe(true);
    await runtime.advance(1_000);
    expect(await owners()).toEqual([['own:1'], ['own:1'], ['own:1']]);
    await quorum.close();
  });
});
