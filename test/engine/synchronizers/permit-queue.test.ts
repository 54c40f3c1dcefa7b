import { BackendError } from '../../../lib/backends/backend-error.js';
import { MemoryBackend } from '../../../lib/backends/redis/in-process/memory-backend.js';
import { MemoryStore } from '../../../lib/backends/redis/in-process/memory-store.js';
import type { Subscription, Wake } from '../../../lib/backends/subscription.js';
import type { RequestId } from '../../../lib/backends/synchronizer-backend.js';
import { LockAbortedError, LockBusyError, LockKeyError, LockUnavailableError } from '../../../lib/engine/errors.js';
import { LockScope, lockScopes, type ScopedLease } from '../../../lib/engine/scope/lock-scope.js';
import { ShareGates } from '../../../lib/engine/scope/share-gate.js';
import { Services } from '../../../lib/engine/services.js';
import {
  type GrantResult,
  PermitQueue,
  type PermitRequest,
  type PermitSource,
  PermitWaiter,
} from '../../../lib/engine/synchronizers/permit-queue.js';
import { FOREVER } from '../../../lib/engine/terms/duration.js';
import { waitEndedError } from '../../../lib/engine/wait/wait-errors.js';
import { ENGINE_DEFAULTS } from '../../support/engine-defaults.js';
import { ms, RecordingLogger } from '../../support/lock-world.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

type Waiter = PermitWaiter<void>;

const unknown = () => new BackendError('no answer in time', 'unavailable', 'unknown');
const refused = () => new BackendError('the connection is closed', 'unavailable', 'refused');
const denied = (outcome: 'refused' | 'unknown' = 'refused') => new BackendError('no permission', 'denied', outcome);

/** A request that the test answers. */
class AnsweredByHand implements PermitRequest {
  /** For each time that it was sent, whether it was a repetition. */
  readonly sent: boolean[] = [];
  readonly granted: number[] = [];
  readonly givenBack: (readonly number[])[] = [];
  answer!: (result: GrantResult) => void;
  fail!: (error: BackendError) => void;

  constructor(
    readonly waiters: readonly Waiter[],
    readonly id: RequestId,
    readonly initial: number | undefined,
    readonly takesPermits: boolean,
    private readonly onSend: () => void,
  ) {}

  send(repeated: boolean): Promise<GrantResult> {
    this.sent.push(repeated);
    this.onSend();
    return new Promise((resolve, reject) => {
      this.answer = resolve;
      this.fail = reject;
    });
  }

  grant(index: number): void {
    this.granted.push(index);
    this.waiters[index].grant();
  }

  giveBack(indexes: readonly number[]): void {
    this.givenBack.push(indexes);
  }
}

class SourceByHand implements PermitSource<Waiter> {
  readonly requests: AnsweredByHand[] = [];
  largestBatch = 100;
  takesPermits = true;
  subscriptions = 0;
  wake: (wake: Wake) => void = () => {};
  onSend = () => {};

  selectBatch(waiters: Iterable<Waiter>): readonly Waiter[] {
    return [...waiters].slice(0, this.largestBatch);
  }

  request(waiters: readonly Waiter[], id: RequestId, initial: number | undefined): PermitRequest {
    const request = new AnsweredByHand(waiters, id, initial, this.takesPermits, () => this.onSend());
    this.requests.push(request);
    return request;
  }

  subscribe(listener: (wake: Wake) => void): Subscription {
    this.subscriptions++;
    this.wake = listener;
    return { ready: new Promise(() => {}), close: () => void this.subscriptions-- };
  }
}

describe('the queue of callers that want permits', () => {
  let runtime: VirtualRuntime;
  let logger: RecordingLogger;
  let services: Services;
  let errors: Error[];
  let source: SourceByHand;
  let queue: PermitQueue<Waiter>;
  let isHeldHere: boolean;
  let retired: number;
  beforeEach(() => {
    runtime = new VirtualRuntime();
    logger = new RecordingLogger();
    services = new Services({
      ...ENGINE_DEFAULTS,
      backend: new MemoryBackend({ runtime, store: new MemoryStore() }),
      runtime,
      logger,
      clientId: 'client',
      watchdogTimeout: ms(30_000),
      waiterTimeout: ms(5_000),
      shutdownTimeout: ms(0),
    });
    errors = [];
    services.events.on('error', (error) => void errors.push(error));
    source = new SourceByHand();
    retired = 0;
    isHeldHere = false;
    let sequence = 0;
    queue = new PermitQueue<Waiter>(
      services,
      'lock:mail',
      source,
      () => ({ session: 'client:permits', sequence: ++sequence }),
      () => isHeldHere,
      () => void retired++,
    );
  });

  class Call {
    outcome: 'granted' | Error | undefined;
    readonly waiter: Waiter;

    constructor(waitTime: number, permits: number, initial: number | undefined, signal: AbortSignal | undefined) {
      this.waiter = new PermitWaiter<void>(
        { name: 'mail', key: 'lock:mail', what: "the semaphore 'mail'", method: 'getSemaphore', initial },
        permits,
        { waitTime: ms(waitTime), outageTimeout: FOREVER, signal },
        runtime,
        () => {
          this.outcome = 'granted';
        },
        (error) => {
          this.outcome = error;
        },
      );
    }
  }

  interface CallOptions {
    readonly waitTime?: number;
    readonly permits?: number;
    readonly initial?: number;
    readonly signal?: AbortSignal;
  }
  const enqueue = ({ waitTime = FOREVER, permits = 1, initial, signal }: CallOptions = {}): Call => {
    const call = new Call(waitTime, permits, initial, signal);
    queue.enqueue(call.waiter);
    return call;
  };
  const tryOnce = (permits = 1) => enqueue({ waitTime: 0, permits });
  const leavable = () => {
    const { signal, abort } = abortable();
    return { abort, call: enqueue({ signal }) };
  };
  const abortable = () => {
    const controller = new AbortController();
    return { signal: controller.signal, abort: () => controller.abort() };
  };
  const last = () => source.requests[source.requests.length - 1];
  const answer = async (served: number, others: Partial<GrantResult> = {}) => {
    last().answer({ served, remaining: -1, ...others });
    await runtime.settle();
  };
  const fail = async (error: BackendError) => {
    last().fail(error);
    await runtime.settle();
  };
  const message = async () => {
    source.wake({ kind: 'message' });
    await runtime.settle();
  };
  /** How many times requests were sent. */
  const sent = () => source.requests.reduce((sum, request) => sum + request.sent.length, 0);
  const waitersOf = (request: AnsweredByHand, ...calls: Call[]) =>
    expect(request.waiters).toEqual(calls.map(({ waiter }) => waiter));

  describe('while permits are there', () => {
    it('asks for one request at a time, and then for all who have come meanwhile', async () => {
      const first = enqueue();
      const others = [enqueue(), enqueue()];
      expect(sent()).toBe(1);
      waitersOf(last(), first);
      expect([queue.length, queue.isAsking]).toEqual([3, true]);
      await answer(1);
      expect(first.outcome).toBe('granted');
      waitersOf(last(), ...others);
      expect([queue.length, sent()]).toEqual([2, 2]);
      await answer(2);
      expect(others.map(({ outcome }) => outcome)).toEqual(['granted', 'granted']);
      expect([queue.length, queue.isAsking, retired]).toEqual([0, false, 1]);
    });

    it('gives each request an id of its own, and tells whether it is a repetition', async () => {
      enqueue();
      enqueue();
      await answer(1);
      await answer(1);
      expect(source.requests.map(({ id, sent }) => ({ id: id.sequence, sent }))).toEqual([
        { id: 1, sent: [false] },
        { id: 2, sent: [false] },
      ]);
    });

    it('asks again at once for those who were not in the request', async () => {
      source.largestBatch = 2;
      const calls = [enqueue(), enqueue(), enqueue(), enqueue()];
      await answer(1);
      waitersOf(last(), calls[1], calls[2]);
      await answer(2);
      waitersOf(last(), calls[3]);
      await answer(1);
      expect(retired).toBe(1);
    });

    it('leaves nothing behind when the last caller is served', async () => {
      enqueue({ waitTime: 5_000 });
      await answer(1);
      expect(runtime.timers).toBe(0);
      await runtime.advance(10_000);
      expect([sent(), retired, source.subscriptions]).toEqual([1, 1, 0]);
    });

    it('asks outside the lock scope of its caller', async () => {
      const scopes: unknown[] = [];
      source.onSend = () => scopes.push(lockScopes.getStore());
      const lease = { live: true, released: false, locks: [], gates: new ShareGates([]) } as unknown as ScopedLease;
      lockScopes.run(new LockScope(lease, undefined), () => void enqueue());
      expect(scopes).toEqual([undefined]);
    });
  });

  describe('while there are too few permits', () => {
    it('rests until a message', async () => {
      const call = enqueue();
      await answer(0);
      await runtime.advance(20_000);
      expect([sent(), source.subscriptions]).toEqual([1, 1]);
      await message();
      expect(sent()).toBe(2);
      await answer(1);
      expect([call.outcome, source.subscriptions]).toEqual(['granted', 0]);
    });

    it('asks again when the earliest lease has ended', async () => {
      enqueue();
      await answer(0, { remaining: 500 });
      await runtime.advance(490);
      expect(sent()).toBe(1);
      await runtime.advance(20);
      expect(sent()).toBe(2);
    });

    it('asks again when a message came during the request', async () => {
      enqueue();
      await answer(0);
      await message();
      await message();
      await answer(0);
      expect(sent()).toBe(3);
      await answer(0);
      await runtime.advance(1_000);
      expect(sent()).toBe(3);
    });

    it('asks for the next caller when the first one leaves, because it may want fewer', async () => {
      const { abort } = leavable();
      const next = enqueue();
      await answer(0);
      expect(sent()).toBe(1);
      abort();
      await runtime.settle();
      expect(sent()).toBe(2);
      waitersOf(last(), next);
    });

    it('asks for the next caller then, also if one who tries once has asked meanwhile', async () => {
      const { abort } = leavable();
      const next = enqueue();
      await answer(0);
      tryOnce();
      await answer(0);
      expect(sent()).toBe(2);
      abort();
      await runtime.settle();
      expect(sent()).toBe(3);
      waitersOf(last(), next);
    });

    it('does not ask when another one leaves', async () => {
      const first = enqueue();
      await answer(0);
      const { abort, call } = leavable();
      expect(sent()).toBe(1);
      abort();
      await runtime.advance(1_000);
      expect(call.outcome).toBeInstanceOf(LockAbortedError);
      expect([sent(), first.outcome, queue.length]).toEqual([1, undefined, 1]);
    });

    it('serves some of a request, and rests for the next one', async () => {
      const calls = [enqueue(), enqueue(), enqueue()];
      await answer(1);
      await answer(1);
      expect(calls.map(({ outcome }) => outcome)).toEqual(['granted', 'granted', undefined]);
      await runtime.advance(1_000);
      expect([sent(), queue.length]).toEqual([2, 1]);
    });

    it('asks again if the first caller that was not served has left during the request', async () => {
      const { abort } = leavable();
      const next = enqueue();
      abort();
      expect(sent()).toBe(1);
      await answer(0);
      expect(sent()).toBe(2);
      waitersOf(last(), next);
    });

    it('asks at once for a caller who comes when all who rested have left during the request of another one', async () => {
      const { abort } = leavable();
      await answer(0);
      tryOnce();
      abort();
      const late = enqueue();
      expect(sent()).toBe(2);
      await answer(0);
      expect(sent()).toBe(3);
      waitersOf(last(), late);
    });

    it('discards the queue when the last caller leaves', async () => {
      const call = enqueue({ waitTime: 1_000 });
      await answer(0);
      await runtime.advance(1_100);
      expect(call.outcome).toBeInstanceOf(LockBusyError);
      expect([retired, source.subscriptions, runtime.timers]).toEqual([1, 0, 0]);
    });

    it('reports a long wait in the log, with what is known of the semaphore', async () => {
      enqueue();
      await answer(0);
      await runtime.advance(31_000);
      expect(logger.warnings).toEqual([
        "A caller has waited for the semaphore 'mail' for over 30 s; it does not exist",
      ]);
    });
  });

  describe('of a semaphore that does not exist', () => {
    it('asks again when a caller comes who can create it', async () => {
      enqueue();
      await answer(0, { missing: true });
      enqueue({ initial: 5 });
      expect([sent(), last().initial]).toEqual([2, 5]);
      await answer(0, { missing: true });
      enqueue({ initial: 9 });
      expect(sent()).toBe(2);
    });

    it('asks again if such a caller came during the request', async () => {
      enqueue();
      enqueue({ initial: 5 });
      expect(source.requests[0].initial).toBeUndefined();
      await answer(0, { missing: true });
      expect([sent(), last().initial]).toEqual([2, 5]);
    });

    it('rests if it exists after all', async () => {
      enqueue();
      enqueue({ initial: 5 });
      await answer(0);
      expect(sent()).toBe(1);
    });
  });

  describe('for callers that try once', () => {
    it('refuses those who were not served', async () => {
      const calls = [tryOnce(), tryOnce(), tryOnce()];
      await answer(1);
      await answer(1);
      expect(calls.map(({ outcome }) => outcome)).toEqual(['granted', 'granted', expect.any(LockBusyError)]);
      expect((calls[2].outcome as Error).message).toBe("A permit of the semaphore 'mail' was not available");
      expect([sent(), retired, queue.length]).toEqual([2, 1, 0]);
    });

    it('does not count them among the waiting callers', async () => {
      tryOnce();
      expect(queue.length).toBe(0);
      enqueue();
      expect(queue.length).toBe(1);
      await answer(1);
      expect(queue.length).toBe(1);
    });

    it('asks although others rest, whose turn that does not change', async () => {
      const waiting = enqueue();
      await answer(0);
      const tried = tryOnce();
      expect(sent()).toBe(2);
      waitersOf(last(), tried);
      await answer(0);
      await runtime.advance(1_000);
      expect([sent(), waiting.outcome]).toEqual([2, undefined]);
      await message();
      waitersOf(last(), waiting);
    });

    it('asks although the others back off', async () => {
      enqueue();
      await fail(refused());
      const tried = tryOnce();
      waitersOf(last(), tried);
    });

    it('takes turns with the others', async () => {
      source.largestBatch = 1;
      tryOnce();
      const waiting = [enqueue(), enqueue()];
      const tried = tryOnce();
      await answer(0);
      waitersOf(last(), waiting[0]);
      await answer(1);
      waitersOf(last(), tried);
      await answer(1);
      waitersOf(last(), waiting[1]);
    });

    it('asks for a second one before the others if the others rest', async () => {
      enqueue();
      await answer(0);
      tryOnce();
      const second = tryOnce();
      await answer(0);
      expect(sent()).toBe(3);
      waitersOf(last(), second);
    });

    it('asks for those together who want as many permits, so that none fails because another one wants more', async () => {
      const first = tryOnce();
      const [two, one, alsoTwo] = [tryOnce(2), tryOnce(), tryOnce(2)];
      waitersOf(last(), first);
      await answer(1);
      waitersOf(last(), two, alsoTwo);
      await answer(0);
      expect([two, one, alsoTwo].map(({ outcome }) => outcome)).toEqual([
        expect.any(LockBusyError),
        undefined,
        expect.any(LockBusyError),
      ]);
      waitersOf(last(), one);
    });

    it('asks for others when one of them has left by its signal', async () => {
      const { signal, abort } = abortable();
      const tried = enqueue({ waitTime: 0, signal });
      abort();
      expect(tried.outcome).toBeInstanceOf(LockAbortedError);
      const waiting = enqueue();
      expect(queue.length).toBe(1);
      await answer(1);
      expect(source.requests[0].givenBack).toEqual([[0]]);
      waitersOf(last(), waiting);
    });

    it('refuses all of them when the backend does not answer', async () => {
      const calls = [tryOnce(), tryOnce(2)];
      await fail(refused());
      for (const { outcome } of calls) expect(outcome).toBeInstanceOf(LockUnavailableError);
      expect([sent(), retired]).toEqual([1, 1]);
    });

    it('refuses them, and not those who wait, when a request for the others fails', async () => {
      const waiting = enqueue();
      const tried = tryOnce();
      await fail(refused());
      expect(tried.outcome).toBeInstanceOf(LockUnavailableError);
      expect(waiting.outcome).toBeUndefined();
    });
  });

  describe('after a failure', () => {
    it('asks again with a new request if the other was not executed, after pauses that grow', async () => {
      enqueue();
      const times: number[] = [];
      for (let n = 0; n < 6; n++) {
        const before = runtime.monotonic();
        await fail(refused());
        const count = sent();
        while (sent() === count) await runtime.advance(1);
        times.push(runtime.monotonic() - before);
      }
      expect(source.requests.map(({ id, sent }) => [id.sequence, sent])).toEqual(
        [1, 2, 3, 4, 5, 6, 7].map((n) => [n, [false]]),
      );
      expect(times[0]).toBeLessThan(60);
      expect(times[5]).toBeGreaterThan(400);
    });

    it('repeats a request that may have been executed, until its result is known', async () => {
      const call = enqueue();
      await fail(unknown());
      await runtime.advance(100);
      await fail(refused());
      await runtime.advance(200);
      expect(source.requests).toHaveLength(1);
      expect(last().sent).toEqual([false, true, true]);
      await answer(1);
      expect(call.outcome).toBe('granted');
    });

    it('does not repeat a request that takes no permits', async () => {
      source.takesPermits = false;
      enqueue();
      await fail(unknown());
      await runtime.advance(100);
      expect(source.requests.map(({ sent }) => sent)).toEqual([[false], [false]]);
    });

    it('asks again if a repetition brought too few permits, because its answer may be old', async () => {
      enqueue();
      await fail(unknown());
      await runtime.advance(100);
      await answer(0);
      expect(source.requests).toHaveLength(2);
      await answer(0);
      await runtime.advance(1_000);
      expect(source.requests).toHaveLength(2);
    });

    it('asks at once for a caller who comes when all who waited for the end of the pause have left', async () => {
      const { abort } = leavable();
      await fail(refused());
      tryOnce();
      abort();
      const late = enqueue();
      await answer(0);
      expect(sent()).toBe(3);
      waitersOf(last(), late);
    });

    it('leaves the pause as it is when the first caller leaves', async () => {
      const { abort } = leavable();
      enqueue();
      await answer(0);
      await message();
      for (let n = 0; n < 5; n++) {
        await fail(refused());
        const count = sent();
        while (sent() === count) await runtime.advance(1);
      }
      await fail(refused());
      const before = sent();
      abort();
      await runtime.advance(300);
      expect(sent()).toBe(before);
      await runtime.advance(1_000);
      expect(sent()).toBe(before + 1);
    });

    it('reports the first of several failures in a row', async () => {
      source.largestBatch = 1;
      enqueue();
      enqueue();
      await fail(refused());
      await runtime.advance(100);
      await fail(refused());
      expect(errors).toEqual([expect.any(LockUnavailableError)]);
      expect(errors[0].message).toBe(
        "The backend gave no usable answer about the semaphore 'mail': the connection is closed",
      );
      await runtime.advance(200);
      await answer(1);
      await fail(refused());
      expect(errors).toHaveLength(2);
    });

    it('says that the backend did not answer to a caller whose time ends, until it has answered', async () => {
      const short = enqueue({ waitTime: 20 });
      const long = enqueue({ waitTime: 2_000 });
      await fail(refused());
      await runtime.advance(22);
      expect(short.outcome).toBeInstanceOf(LockUnavailableError);
      await runtime.advance(100);
      await answer(0);
      await runtime.advance(2_000);
      expect(long.outcome).toBeInstanceOf(LockBusyError);
    });

    it('refuses those in the request, and those who try once, if it lasts', async () => {
      source.largestBatch = 1;
      const [first, second, tried] = [enqueue(), enqueue(), tryOnce()];
      await fail(denied('unknown'));
      expect([first.outcome, second.outcome, tried.outcome]).toEqual([
        expect.any(LockUnavailableError),
        undefined,
        expect.any(LockUnavailableError),
      ]);
      await runtime.advance(100);
      waitersOf(last(), second);
      expect(source.requests).toHaveLength(2);
    });

    it('says that the key is used for something else', async () => {
      const call = enqueue();
      await fail(new BackendError('it holds a list', 'key', 'refused'));
      expect(call.outcome).toBeInstanceOf(LockKeyError);
      expect((call.outcome as Error).message).toBe("The semaphore 'mail' cannot be used: it holds a list");
      expect([retired, runtime.timers]).toEqual([1, 0]);
    });

    it('asks with a new request if permits came too late', async () => {
      const call = enqueue();
      await fail(unknown());
      await runtime.advance(100);
      await answer(0, { late: refused() });
      expect(call.outcome).toBeUndefined();
      expect([source.requests.length, sent()]).toEqual([1, 2]);
      await runtime.advance(200);
      expect(source.requests).toHaveLength(2);
      expect(last().sent).toEqual([false]);
    });
  });

  describe('when its callers have left', () => {
    it('gives back what they were granted, and serves the others', async () => {
      const [one, two] = [abortable(), abortable()];
      enqueue();
      const calls = [enqueue({ signal: one.signal }), enqueue(), enqueue({ signal: two.signal })];
      await answer(1);
      one.abort();
      two.abort();
      await answer(3);
      expect(last().givenBack).toEqual([[0, 2]]);
      expect(last().granted).toEqual([1]);
      expect(calls[1].outcome).toBe('granted');
      expect(source.requests[0].givenBack).toEqual([]);
    });

    it('repeats a request that may have taken permits every second, until it knows', async () => {
      const { abort } = leavable();
      abort();
      await fail(unknown());
      expect(retired).toBe(0);
      await runtime.advance(990);
      expect(sent()).toBe(1);
      await runtime.advance(20);
      expect(last().sent).toEqual([false, true]);
      await fail(refused());
      await runtime.advance(990);
      expect(sent()).toBe(2);
      await runtime.advance(20);
      await answer(1);
      expect(last().givenBack).toEqual([[0]]);
      expect([source.requests.length, retired, runtime.timers]).toEqual([1, 1, 0]);
    });

    it('repeats it at once when another caller comes', async () => {
      const { abort } = leavable();
      abort();
      await fail(unknown());
      await runtime.advance(100);
      const next = enqueue();
      expect(last().sent).toEqual([false, true]);
      await answer(1);
      waitersOf(last(), next);
      await answer(1);
      expect(next.outcome).toBe('granted');
      await runtime.advance(2_000);
      expect([sent(), runtime.timers]).toEqual([3, 0]);
    });

    it('sends nothing more if the request was not executed', async () => {
      const { abort } = leavable();
      abort();
      await fail(refused());
      expect([retired, runtime.timers]).toEqual([1, 0]);
    });

    it('sends nothing more if the request takes nothing', async () => {
      source.takesPermits = false;
      const { abort } = leavable();
      abort();
      await fail(unknown());
      expect([retired, runtime.timers]).toEqual([1, 0]);
    });
  });

  describe('when it is closed', () => {
    it('refuses everybody, and waits for the answer of the request that is under way', async () => {
      const calls = [enqueue(), tryOnce()];
      let closed = false;
      void queue.close().then(() => {
        closed = true;
      });
      await runtime.settle();
      for (const { outcome } of calls) {
        expect(outcome).toBeInstanceOf(LockAbortedError);
        expect((outcome as Error).message).toBe(
          "Waiting for the semaphore 'mail' ended because the lock service was closed",
        );
      }
      expect(closed).toBe(false);
      await answer(1);
      expect(closed).toBe(true);
      expect(last().givenBack).toEqual([[0]]);
      expect([sent(), retired, runtime.timers]).toEqual([1, 0, 0]);
    });

    it('does not repeat the request', async () => {
      enqueue();
      void queue.close();
      await fail(unknown());
      expect(runtime.timers).toBe(0);
      await runtime.advance(2_000);
      expect(sent()).toBe(1);
    });

    it('cancels a repetition', async () => {
      const { abort } = leavable();
      abort();
      await fail(unknown());
      await queue.close();
      expect(runtime.timers).toBe(0);
    });

    it('stops listening', async () => {
      enqueue();
      await answer(0, { remaining: 10_000 });
      await queue.close();
      expect([source.subscriptions, runtime.timers]).toEqual([0, 0]);
    });

    it('asks for nobody any more', async () => {
      await queue.close();
      enqueue();
      expect(sent()).toBe(0);
    });
  });

  const refuseStrangers = () =>
    queue.callers.refuseWhere((waiter) => (waiter.keepsWaiting ? undefined : waitEndedError(waiter)));

  it('says whether its callers wait for an answer, for this process or for another one', async () => {
    enqueue();
    expect(queue.callers.awaited).toBe('an answer');
    await answer(0);
    expect(queue.callers.awaited).toBe('another process');
    isHeldHere = true;
    expect(queue.callers.awaited).toBe('this process');
  });

  it('refuses all but those in a lock scope when the service shuts down', async () => {
    const [outside, inside] = [enqueue(), enqueue()];
    inside.waiter.scoped = true;
    refuseStrangers();
    expect(outside.outcome).toBeInstanceOf(LockAbortedError);
    expect((outside.outcome as Error).message).toMatch(
      /^Waiting for the semaphore 'mail' has ended: the lock service is shutting down/,
    );
    await answer(0);
    await answer(1);
    expect(inside.outcome).toBe('granted');
  });

  it('asks for nobody who is refused a moment later', async () => {
    const calls = [enqueue(), enqueue(), enqueue()];
    await answer(0);
    refuseStrangers();
    for (const { outcome } of calls) expect(outcome).toBeInstanceOf(LockAbortedError);
    expect([sent(), retired]).toEqual([1, 1]);
  });

  it('asks for those who may wait on when the one for whom there were too few permits is refused', async () => {
    enqueue();
    const inside = enqueue();
    inside.waiter.scoped = true;
    await answer(0);
    refuseStrangers();
    expect(sent()).toBe(2);
    waitersOf(last(), inside);
  });

  it('asks for the next of those who wait on when the first of them leaves', async () => {
    const { signal, abort } = abortable();
    const [first, next] = [enqueue({ signal }), enqueue()];
    enqueue();
    for (const { waiter } of [first, next]) waiter.scoped = true;
    await answer(0);
    refuseStrangers();
    expect([sent(), queue.length]).toEqual([1, 2]);
    abort();
    expect(sent()).toBe(2);
    waitersOf(last(), next);
  });

  it('says how many permits were not available, and for how long', async () => {
    const busy = [enqueue({ waitTime: 200 }), enqueue({ waitTime: 300, permits: 3 })];
    await answer(0);
    await runtime.advance(350);
    await answer(0);
    expect(busy.map(({ outcome }) => (outcome as Error)?.message)).toEqual([
      "A permit of the semaphore 'mail' was not available within 200 ms",
      "3 permits of the semaphore 'mail' were not available within 300 ms",
    ]);
    expect(busy[0].outcome).toMatchObject({ lockName: 'mail', remainingTime: -1, holder: undefined });
  });
});
