import { FOREVER } from '../../../lib/engine/terms/duration.js';
import { ms } from '../../support/lock-world.js';
import { lockScene } from '../queue/scripted-scene.js';

describe('the log of an outage', () => {
  const open = () => {
    const scene = lockScene('reentrant', { health: true });
    const { health } = scene.backend.health as NonNullable<typeof scene.backend.health>;
    const { errors } = scene.logger;
    return { ...scene, node: health, errors };
  };

  it('says that a node refuses, if it has answered, and does not answer, if it has not', async () => {
    const { runtime, node, errors, arrive } = open();
    node.failed(true, 'OOM command not allowed');
    arrive({ outageTimeout: ms(10_000) });
    await runtime.settle();
    expect(errors).toEqual([
      "scripted refuses to take locks (OOM command not allowed). A caller waits for the lock 'order'. If it still refuses at 00:00:10 UTC, it gets LockUnavailableError (outageTimeout)",
    ]);
    node.answered(true);
    await runtime.advance(20_000);
    arrive({ outageTimeout: ms(10_000) });
    node.failed(false, 'ECONNRESET');
    await runtime.advance(100);
    expect(errors[1]).toMatch(/^scripted does not answer \(ECONNRESET\)\. /);
  });

  it('names the waitTime of a caller if that ends first, and the first of several', async () => {
    const { runtime, node, errors, arrive } = open();
    node.failed(false);
    arrive({ outageTimeout: ms(10_000) });
    arrive({ waitTime: ms(3_000), outageTimeout: ms(10_000) });
    await runtime.settle();
    expect(errors).toEqual([
      "scripted does not answer. 2 callers wait, one of them for the lock 'order'. If there is no answer by 00:00:03 UTC, the first of them gets LockUnavailableError (waitTime)",
    ]);
  });

  it('has one line for each outage, however long it lasts and however many callers come', async () => {
    const { runtime, node, errors, arrive } = open();
    node.failed(false);
    arrive({ outageTimeout: FOREVER });
    await runtime.settle();
    for (let minutes = 0; minutes < 3; minutes++) {
      arrive({ outageTimeout: ms(20_000) });
      await runtime.advance(60_000);
    }
    expect(errors).toHaveLength(1);
    node.answered(true);
    await runtime.advance(1_000);
    node.failed(false);
    await runtime.settle();
    expect(errors).toHaveLength(2);
  });

  it('has a line every ten seconds at most of a node that comes and goes', async () => {
    const { runtime, node, errors, arrive } = open();
    arrive({ outageTimeout: FOREVER });
    for (let seconds = 0; seconds < 30; seconds++) {
      node.failed(false);
      await runtime.advance(500);
      node.answered(true);
      await runtime.advance(500);
    }
    expect(errors).toHaveLength(3);
  });

  it('has none if nobody waits', async () => {
    const { runtime, node, errors } = open();
    node.failed(false);
    await runtime.advance(60_000);
    expect(errors).toEqual([]);
  });
});

describe('a caller that arrives in an outage', () => {
  it('is refused at once if it tries once and there is no connection, and the node is pinged', async () => {
    const { backend, runtime, trier } = lockScene('reentrant', { health: true });
    backend.health?.health.failed(false, 'timeout');
    await runtime.advance(100);
    backend.connectionError = new Error('ECONNREFUSED');
    const once = trier();
    await runtime.settle();
    expect(once.error?.message).toContain(
      "The lock 'order' could not be acquired: scripted: no usable answer for 100 ms (ECONNREFUSED)",
    );
    expect([backend.pings, backend.count('acquire')]).toEqual([1, 0]);
  });

  it.each([
    [100, 'LockUnavailableError'],
    [99, 'LockBusyError'],
  ] as const)('is refused as in an outage only if its node had %i ms to answer: %s', async (waitTime, expected) => {
    const { runtime, arrive } = lockScene('reentrant', { health: true });
    const caller = arrive({ waitTime: ms(waitTime) });
    await runtime.advance(waitTime);
    expect(caller.outcome).toBe(expected);
  });
});
