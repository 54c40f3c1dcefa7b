import { type LockBackend, NodeHealth } from '../../../lib/backends/lock-backend.js';
import { LockUnavailableError } from '../../../lib/engine/errors.js';
import { EventHub } from '../../../lib/engine/events/event-hub.js';
import { FOREVER } from '../../../lib/engine/terms/duration.js';
import { Caller } from '../../../lib/engine/wait/caller.js';
import { OutageLimit, type WaitingQueue } from '../../../lib/engine/wait/outage-limit.js';
import { ms, RecordingLogger } from '../../support/lock-world.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

const KEYS = ['lock:order'];

class Waiting extends Caller<never> {
  error: Error | undefined;

  constructor(runtime: VirtualRuntime, waitTime: number, outageTimeout: number) {
    const terms = { waitTime: ms(waitTime), outageTimeout: ms(outageTimeout), signal: undefined };
    super(
      'order',
      terms,
      runtime,
      () => {},
      (error) => {
        this.error = error;
      },
    );
  }

  get what(): string {
    return `the lock '${this.name}'`;
  }
}

describe('the limit of waits in an outage', () => {
  const setUp = () => {
    const runtime = new VirtualRuntime();
    const logger = new RecordingLogger();
    const callers: Waiting[] = [];
    let changed = (_: NodeHealth) => {};
    const nodeOf = (description: string) => new NodeHealth(description, runtime, (changing) => changed(changing));
    const node = nodeOf('redis 127.0.0.1:6379/0');
    /** The nodes of keys that have another one. */
    const nodes = new Map<string, NodeHealth>();
    const pinged: string[] = [];
    const health = {
      node: (key: string) => nodes.get(key) ?? node,
      ping: (keys: Iterable<string>) => void pinged.push(...keys),
      listen: (listener: typeof changed) => {
        changed = listener;
      },
    };
    const queue = {
      keys: KEYS,
      refuseWhere: (errorOf: (caller: Caller<never>) => Error | undefined) => {
        for (const caller of callers.filter(({ settled }) => !settled)) {
          const error = errorOf(caller);
          if (error !== undefined) caller.refuse(error);
        }
      },
    };
    const queues = {
      get isEmpty() {
        return callers.every(({ settled }) => settled);
      },
      forEach: (visit: (queue: WaitingQueue) => void) => visit(queue),
    };
    const backend = { health, description: 'redis' } as unknown as LockBackend;
    const lines: string[] = [];
    const events = new EventHub(runtime, Object.assign(logger, { log: (line: string) => void lines.push(line) }));
    const ends: number[] = [];
    const limit = new OutageLimit(backend, runtime, events, queues, (since) => void ends.push(since));
    const arrive = (waitTime: number, outageTimeout: number) => {
      const caller = new Waiting(runtime, waitTime, outageTimeout);
      callers.push(caller);
      expect(limit.arrived(caller, KEYS)).toBeUndefined();
      return caller;
    };
    return {
      ends,
      lines,
      backend,
      runtime,
      logger,
      events,
      node,
      nodes,
      nodeOf,
      pinged,
      queue,
      limit,
      callers,
      arrive,
    };
  };

  it('is the outageTimeout of each caller, counted from its arrival', async () => {
    const { runtime, node, limit, arrive } = setUp();
    node.failed(false);
    expect(limit.active).toBe(true);
    await runtime.advance(1_000);
    const late = arrive(FOREVER, 5_000);
    const early = arrive(FOREVER, 2_000);
    await runtime.advance(1_990);
    expect([early.error, late.error]).toEqual([undefined, undefined]);
    await runtime.advance(50);
    expect(early.error).toBeInstanceOf(LockUnavailableError);
    await runtime.advance(2_900);
    expect(late.error).toBeUndefined();
    await runtime.advance(100);
    expect(late.error).toBeInstanceOf(LockUnavailableError);
    expect(runtime.timers).toBe(0);
  });

  it('is searched for by one timer, for the caller whose time ends first, whoever came first', async () => {
    for (const times of [
      [2_000, 5_000, 3_000],
      [5_000, 3_000, 2_000],
    ]) {
      const { runtime, node, arrive } = setUp();
      node.failed(false);
      await runtime.settle();
      const callers = times.map((time) => arrive(FOREVER, time));
      expect(runtime.timers).toBe(1);
      for (const now of [2_000, 3_000, 5_000]) {
        await runtime.advance(now - runtime.monotonic());
        await runtime.settle();
        expect(callers.map(({ settled }) => settled)).toEqual(times.map((time) => time <= now));
      }
    }
  });

  it('costs no timer for a caller whose waitTime ends first', async () => {
    const { runtime, node, arrive } = setUp();
    node.failed(false);
    await runtime.settle();
    arrive(1_000, 5_000);
    expect(runtime.timers).toBe(0);
    arrive(FOREVER, 8_000);
    expect(runtime.timers).toBe(1);
    arrive(FOREVER, 9_000);
    expect(runtime.timers).toBe(1);
  });

  it('ends with the outage', async () => {
    const { runtime, node, limit, arrive } = setUp();
    node.failed(false);
    const caller = arrive(FOREVER, 5_000);
    await runtime.settle();
    node.answered(true);
    expect(limit.active).toBe(false);
    expect(runtime.timers).toBe(0);
    await runtime.advance(10_000);
    expect(caller.error).toBeUndefined();
    expect(arrive(FOREVER, 5_000).calledAt).toBe(0);
    expect(runtime.timers).toBe(0);
  });

  it('tells when an outage has ended, and since when it lasted, and logs that if it has logged its beginning', async () => {
    const { runtime, lines, node, ends, arrive } = setUp();
    await runtime.advance(1_000);
    node.failed(false);
    await runtime.advance(500);
    node.answered(true);
    expect([ends, lines]).toEqual([[1_000], []]);
    await runtime.advance(500);
    node.failed(false);
    arrive(FOREVER, 10_000);
    await runtime.advance(2_500);
    node.answered(true);
    expect([ends, lines]).toEqual([[1_000, 2_000], ['redis 127.0.0.1:6379/0 answers again, after 2.5 s']]);
    node.failed(true, 'OOM command not allowed');
    await runtime.advance(100);
    node.answered(true);
    expect(lines).toHaveLength(1);
    await runtime.advance(10_000);
    node.failed(true, 'OOM command not allowed');
    await runtime.advance(3_000);
    node.answered(true);
    expect(lines[1]).toBe('redis 127.0.0.1:6379/0 takes locks again, after 3.0 s');
  });

  it('starts no timer after the end of the service', async () => {
    const { runtime, node, limit, arrive } = setUp();
    node.failed(false);
    await runtime.settle();
    limit.close();
    arrive(FOREVER, 5_000);
    expect(runtime.timers).toBe(0);
  });

  it('lets a refused caller know that the node is silent only if it is', async () => {
    const { runtime, node, limit, arrive } = setUp();
    const caller = arrive(1_000, 5_000);
    await runtime.advance(500);
    node.answered(true);
    expect(limit.isSilent(caller, KEYS, true)).toBe(false);
    await runtime.advance(100);
    const next = arrive(1_000, 5_000);
    await runtime.advance(500);
    expect(limit.isSilent(next, KEYS, false)).toBe(false);
    expect(limit.isSilent(next, KEYS, true)).toBe(true);
    node.failed(false);
    expect(limit.isSilent(caller, KEYS, false)).toBe(true);
  });

  describe('calls a node silent whose connection seems to be healthy', () => {
    /** A caller that asked `asked` ms after it came, and whose time has ended after `waited` ms without an answer. */
    const silent = async (waitTime: number, waited: number, asked = 0, connectionError?: string) => {
      const { backend, runtime, node, limit, arrive } = setUp();
      Object.assign(backend, { connectionError });
      node.answered(true);
      await runtime.advance(1);
      const caller = arrive(waitTime, 60_000);
      await runtime.advance(waited);
      return limit.isSilent(caller, KEYS, true, runtime.monotonic() - waited + asked);
    };

    it('when a wait of 100 ms has ended', async () => {
      expect(await silent(100, 100)).toBe(true);
    });

    it('not when a shorter wait has ended, even if this process stood still for long', async () => {
      expect(await silent(99, 99)).toBe(false);
      expect(await silent(99, 5_000)).toBe(false);
    });

    it('not when the caller did not wait at all', async () => {
      expect(await silent(1_000, 0)).toBe(false);
    });

    it('not when the last question was asked less than 100 ms ago', async () => {
      expect(await silent(1_000, 1_000, 901)).toBe(false);
      expect(await silent(1_000, 1_000, 900)).toBe(true);
    });

    it('at once when the connection is known to be broken', async () => {
      expect(await silent(50, 50, 0, 'ECONNREFUSED')).toBe(true);
      expect(await silent(1_000, 1_000, 990, 'ECONNREFUSED')).toBe(true);
    });
  });

  it('logs that a node refuses, if it has answered, and does not answer, if it has not', async () => {
    const { runtime, logger, node, arrive } = setUp();
    node.failed(true, 'OOM command not allowed');
    arrive(FOREVER, 10_000);
    await runtime.settle();
    expect(logger.errors).toEqual([
      "redis 127.0.0.1:6379/0 refuses to take locks (OOM command not allowed). A caller waits for the lock 'order'. If it still refuses at 00:00:10 UTC, it gets LockUnavailableError (outageTimeout)",
    ]);
    node.answered(true);
    await runtime.advance(20_000);
    node.failed(true, 'LOADING');
    node.failed(false, 'ECONNRESET');
    await runtime.advance(100);
    expect(logger.errors[1]).toMatch(/^redis 127\.0\.0\.1:6379\/0 does not answer \(ECONNRESET\)\. /);
  });

  it('logs the waitTime of a caller as its limit, if it ends first', async () => {
    const { runtime, logger, node, arrive } = setUp();
    node.failed(false);
    arrive(FOREVER, 10_000);
    arrive(3_000, 10_000);
    await runtime.settle();
    expect(logger.errors).toEqual([
      "redis 127.0.0.1:6379/0 does not answer. 2 callers wait, one of them for the lock 'order'. If there is no answer by 00:00:03 UTC, the first of them gets LockUnavailableError (waitTime)",
    ]);
  });

  it('logs each outage once, however long it lasts and however many callers come', async () => {
    const { runtime, logger, node, arrive } = setUp();
    node.failed(false);
    arrive(FOREVER, FOREVER);
    await runtime.settle();
    expect(logger.errors).toHaveLength(1);
    for (let minutes = 0; minutes < 3; minutes++) {
      arrive(FOREVER, 20_000);
      await runtime.advance(60_000);
    }
    expect(logger.errors).toHaveLength(1);
    node.answered(true);
    await runtime.advance(1_000);
    node.failed(false);
    await runtime.settle();
    expect(logger.errors).toHaveLength(2);
  });

  it('logs a node that comes and goes at most every ten seconds', async () => {
    const { runtime, logger, node, arrive } = setUp();
    arrive(FOREVER, FOREVER);
    for (let seconds = 0; seconds < 30; seconds++) {
      node.failed(false);
      await runtime.advance(500);
      node.answered(true);
      await runtime.advance(500);
    }
    expect(logger.errors).toHaveLength(3);
  });

  it('logs single failures only on a backend that does not report its outages', () => {
    const { logger, limit } = setUp();
    const failure = () => new Error('refused');
    limit.attemptFailed(failure);
    expect(logger.errors).toEqual([]);
    const runtime = new VirtualRuntime();
    const backend = { health: undefined } as LockBackend;
    const queues = { isEmpty: true, forEach: () => {} };
    new OutageLimit(backend, runtime, new EventHub(runtime, logger), queues).attemptFailed(failure);
    expect(logger.errors).toEqual(['refused']);
  });

  describe('for a caller that arrives in an outage', () => {
    it('that tries once without a connection ends at once, and the node is asked whether it answers again', async () => {
      const { backend, runtime, node, pinged, limit } = setUp();
      const once = new Waiting(runtime, 0, 5_000);
      node.failed(false, 'timeout');
      await runtime.advance(100);
      expect(limit.arrived(once, KEYS)).toBeUndefined();
      expect(once.calledAt).toBe(100);
      expect(pinged).toEqual([]);
      Object.assign(backend, { connectionError: new Error('ECONNREFUSED') });
      const error = limit.arrived(once, KEYS);
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect(error?.message).toBe(
        "The lock 'order' could not be acquired: redis 127.0.0.1:6379/0: no usable answer for 100 ms (ECONNREFUSED)",
      );
      expect(pinged).toEqual(KEYS);
      expect(limit.arrived(new Waiting(runtime, FOREVER, 5_000), KEYS)).toBeUndefined();
    });

    it('that tries once needs no search', async () => {
      const { runtime, node, limit } = setUp();
      node.failed(false);
      await runtime.settle();
      limit.arrived(new Waiting(runtime, 0, 5_000), KEYS);
      expect(runtime.timers).toBe(0);
    });

    it('is not recorded if its own node answers', () => {
      const { runtime, node, nodes, nodeOf, limit } = setUp();
      nodes.set('lock:stock', nodeOf('other'));
      node.failed(false);
      const caller = new Waiting(runtime, FOREVER, 5_000);
      expect(limit.arrived(caller, ['lock:stock'])).toBeUndefined();
      expect(runtime.timers).toBe(0);
    });
  });

  it('is not searched for any more once nobody waits', async () => {
    const { runtime, node, limit, arrive } = setUp();
    node.failed(false);
    await runtime.settle();
    const [first, second] = [arrive(FOREVER, 5_000), arrive(FOREVER, 6_000)];
    first.refuse(new Error('left'));
    limit.left();
    expect(runtime.timers).toBe(1);
    second.refuse(new Error('left'));
    limit.left();
    expect(runtime.timers).toBe(0);
    arrive(FOREVER, 7_000);
    expect(runtime.timers).toBe(1);
  });

  it('keeps no process alive, and is not searched for more often than every 20 ms', async () => {
    const { runtime, node, callers, arrive } = setUp();
    node.failed(false);
    await runtime.settle();
    const early = arrive(FOREVER, 1);
    expect([runtime.timers, runtime.keepAliveTimers]).toEqual([1, 0]);
    await runtime.advance(19);
    expect(early.error).toBeUndefined();
    await runtime.advance(1);
    expect(early.error).toBeInstanceOf(LockUnavailableError);
    expect(callers).toHaveLength(1);
  });

  it('is over for a key when its outage has lasted so long since the call', async () => {
    const { runtime, node, limit } = setUp();
    await runtime.advance(1_000);
    expect(limit.isOver(KEYS[0], 0, 0)).toBe(false);
    node.failed(false);
    await runtime.advance(500);
    expect(limit.isOver(KEYS[0], 0, 500)).toBe(true);
    expect(limit.isOver(KEYS[0], 0, 501)).toBe(false);
    expect(limit.isOver(KEYS[0], 1_200, 500)).toBe(false);
    expect(limit.isOver(KEYS[0], 1_200, 300)).toBe(true);
  });

  it('does not end, nor is it searched for, for callers whose node answers', async () => {
    const { runtime, node, nodes, nodeOf, queue, callers } = setUp();
    nodes.set('lock:stock', nodeOf('other'));
    queue.keys = ['lock:stock'];
    const caller = new Waiting(runtime, FOREVER, 10);
    callers.push(caller);
    node.failed(false);
    await runtime.advance(1_000);
    expect([caller.error, runtime.timers]).toEqual([undefined, 0]);
  });

  it('counts from the outage that began first if a caller wants keys of several nodes', async () => {
    const { runtime, node, nodes, nodeOf, limit } = setUp();
    const other = nodeOf('other');
    nodes.set('lock:stock', other);
    other.failed(false, 'other is away');
    await runtime.advance(100);
    node.failed(false, 'this one is away');
    await runtime.advance(50);
    for (const keys of [
      ['lock:order', 'lock:stock'],
      ['lock:stock', 'lock:order'],
    ])
      expect(limit.failure(keys)?.message).toBe('other: no usable answer for 150 ms (other is away)');
    other.answered(true);
    expect(limit.active).toBe(true);
    expect(limit.failure(['lock:order', 'lock:stock'])?.message).toContain('this one is away');
    node.answered(true);
    expect([limit.active, limit.failure(['lock:order'])]).toEqual([false, undefined]);
  });

  it('goes on for callers of one node when another one answers again', async () => {
    const { runtime, node, nodeOf, arrive } = setUp();
    const other = nodeOf('other');
    other.failed(false);
    node.failed(false);
    await runtime.settle();
    const caller = arrive(FOREVER, 1_000);
    other.answered(true);
    await runtime.advance(1_000);
    expect(caller.error).toBeInstanceOf(LockUnavailableError);
  });

  it('is kept for callers that arrived before the outage, a turn after it has begun', async () => {
    const { runtime, node, callers } = setUp();
    const caller = new Waiting(runtime, FOREVER, 0);
    callers.push(caller);
    node.failed(false);
    expect(caller.error).toBeUndefined(); // the backend is about to reject its request
    await runtime.settle();
    expect(caller.error).toBeInstanceOf(LockUnavailableError);
  });

  it('refuses nobody after the end of the service', async () => {
    const { runtime, node, limit, callers, arrive } = setUp();
    node.failed(false);
    await runtime.settle();
    const waiting = arrive(FOREVER, 500);
    limit.close();
    expect(runtime.timers).toBe(0);
    node.answered(true);
    const caller = new Waiting(runtime, FOREVER, 0);
    callers.push(caller);
    node.failed(false);
    await runtime.advance(1_000);
    expect([waiting.error, caller.error]).toEqual([undefined, undefined]);
  });

  describe('does not count a node as silent', () => {
    it('for a caller without a waitTime, nor if nobody knows whether it answers', async () => {
      const { backend, runtime, limit } = setUp();
      const forever = new Waiting(runtime, FOREVER, 5_000);
      const limited = new Waiting(runtime, 1_000, 5_000);
      await runtime.advance(1_000);
      expect(limit.isSilent(forever, KEYS, true)).toBe(false);
      expect(limit.isSilent(limited, KEYS, true)).toBe(true);
      Object.assign(backend, { health: undefined });
      expect(limit.isSilent(limited, KEYS, true)).toBe(false);
    });

    it('that has answered in the moment in which the caller came', async () => {
      const { runtime, node, limit } = setUp();
      await runtime.advance(1_000);
      node.answered(true);
      const caller = new Waiting(runtime, 1_000, 5_000);
      await runtime.advance(1_000);
      expect(limit.isSilent(caller, KEYS, true)).toBe(false);
    });

    it('unless one of several has not answered', async () => {
      const { runtime, node, nodes, nodeOf, limit } = setUp();
      nodes.set('lock:stock', nodeOf('other'));
      const caller = new Waiting(runtime, 1_000, 5_000);
      await runtime.advance(1_000);
      node.answered(true);
      expect(limit.isSilent(caller, ['lock:order'], true)).toBe(false);
      expect(limit.isSilent(caller, ['lock:order', 'lock:stock'], true)).toBe(true);
    });
  });

  describe('is logged', () => {
    it('with the error of the connection, if it is known, which is then no refusal', async () => {
      const { backend, runtime, logger, node, arrive } = setUp();
      Object.assign(backend, { connectionError: new Error('ECONNREFUSED') });
      node.failed(true, 'LOADING');
      arrive(FOREVER, FOREVER);
      await runtime.settle();
      expect(logger.errors).toEqual([
        "redis 127.0.0.1:6379/0 does not answer (ECONNREFUSED). A caller waits for the lock 'order'. It waits until there is an answer (outageTimeout: Infinity)",
      ]);
    });

    it('with the error of the connection as the cause, for those that listen', async () => {
      const { backend, runtime, events, logger, node, arrive } = setUp();
      const connectionError = new Error('ECONNREFUSED');
      Object.assign(backend, { connectionError });
      const errors: Error[] = [];
      events.on('error', (error) => errors.push(error));
      node.failed(false);
      arrive(FOREVER, FOREVER);
      await runtime.settle();
      expect(logger.errors).toEqual([]);
      expect(errors).toEqual([expect.any(LockUnavailableError)]);
      expect((errors[0].cause as Error).cause).toBe(connectionError);
    });

    it('without a time if callers wait for as long as the node refuses', async () => {
      const { runtime, logger, node, arrive } = setUp();
      node.failed(true, 'OOM');
      arrive(FOREVER, FOREVER);
      arrive(FOREVER, FOREVER);
      await runtime.settle();
      expect(logger.errors[0]).toMatch(/They wait until it takes locks \(outageTimeout: Infinity\)$/);
    });

    it('with the time of the first of several callers, whoever came first', async () => {
      for (const times of [
        [3_000, 5_000, 8_000],
        [8_000, 5_000, 3_000],
      ]) {
        const { runtime, logger, node, arrive } = setUp();
        node.failed(false);
        for (const time of times) arrive(FOREVER, time);
        await runtime.settle();
        expect(logger.errors).toEqual([
          "redis 127.0.0.1:6379/0 does not answer. 3 callers wait, one of them for the lock 'order'. If there is no answer by 00:00:03 UTC, the first of them gets LockUnavailableError (outageTimeout)",
        ]);
      }
    });

    it('with the outageTimeout of a caller that tries once', async () => {
      const { runtime, logger, node, arrive } = setUp();
      await runtime.advance(5_000);
      node.failed(false);
      arrive(0, 4_000);
      await runtime.settle();
      expect(logger.errors[0]).toContain('by 00:00:09 UTC, it gets LockUnavailableError (outageTimeout)');
    });

    it('with the outageTimeout, if it ends together with the waitTime', async () => {
      const { runtime, logger, node, arrive } = setUp();
      node.failed(false);
      arrive(4_000, 4_000);
      await runtime.settle();
      expect(logger.errors[0]).toContain('(outageTimeout)');
    });

    it('for each node', async () => {
      const { runtime, logger, node, nodeOf, nodes, queue, arrive } = setUp();
      node.failed(false);
      arrive(FOREVER, 60_000);
      await runtime.settle();
      const other = nodeOf('other');
      nodes.set('lock:stock', other);
      queue.keys = ['lock:stock'];
      other.failed(false);
      await runtime.settle();
      expect(logger.errors.map((error) => error.split(' ')[0])).toEqual(['redis', 'other']);
    });

    it('again only when ten seconds have passed since the last line', async () => {
      const { runtime, logger, node, arrive } = setUp();
      arrive(FOREVER, FOREVER);
      const comesAndGoes = async (pause: number) => {
        node.answered(true);
        await runtime.advance(pause);
        node.failed(false);
        await runtime.settle();
        return logger.errors.length;
      };
      expect(await comesAndGoes(0)).toBe(1);
      expect(await comesAndGoes(9_999)).toBe(1);
      expect(await comesAndGoes(1)).toBe(2);
    });
  });
});
