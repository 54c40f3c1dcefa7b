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
    const node = new NodeHealth('redis 127.0.0.1:6379/0', runtime, (node) => changed(node));
    const health = {
      node: () => node,
      ping: () => {},
      listen: (listener: typeof changed) => {
        changed = listener;
      },
    };
    const queue: WaitingQueue = {
      keys: KEYS,
      refuseWhere: (errorOf) => {
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
    const limit = new OutageLimit(backend, runtime, new EventHub(runtime, logger), queues);
    const arrive = (waitTime: number, outageTimeout: number) => {
      const caller = new Waiting(runtime, waitTime, outageTimeout);
      callers.push(caller);
      expect(limit.arrived(caller, KEYS)).toBeUndefined();
      return caller;
    };
    return { backend, runtime, logger, node, limit, arrive };
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
    expect(late.error).toBeUndefined();
    await runtime.advance(3_000);
    expect(late.error).toBeInstanceOf(LockUnavailableError);
    expect(runtime.timers).toBe(0);
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
});
