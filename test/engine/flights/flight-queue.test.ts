import { BackendError } from '../../../lib/backends/backend-error.js';
import type {
  FlightBackend,
  FlightReleaseReply,
  FlightReply,
  FlightRun,
  Wake,
} from '../../../lib/backends/lock-backend.js';
import { MemoryBackend } from '../../../lib/backends/redis/in-process/memory-backend.js';
import { MemoryStore } from '../../../lib/backends/redis/in-process/memory-store.js';
import { LockBusyError, LockUnavailableError } from '../../../lib/engine/errors.js';
import { FlightQueue, FlightWaiter, type SharedResult } from '../../../lib/engine/flights/flight-queue.js';
import { toFlightTerms } from '../../../lib/engine/flights/flight-terms.js';
import { HeldLock, type LockShare } from '../../../lib/engine/hold/held-lock.js';
import { Services } from '../../../lib/engine/services.js';
import { FOREVER } from '../../../lib/engine/terms/duration.js';
import { DEFAULT_TERMS, toTerms } from '../../../lib/engine/terms/lock-options.js';
import { ENGINE_DEFAULTS } from '../../support/engine-defaults.js';
import { ms, RecordingLogger } from '../../support/lock-world.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';
import { giveBack } from '../hold/give-back.js';

const unknown = () => new BackendError('no answer in time', 'unavailable', 'unknown');
const refused = () => new BackendError('the connection is closed', 'unavailable', 'refused');

/** A request that the test answers. */
class Asked<Request, Reply> {
  answer!: (reply: Reply) => void;
  fail!: (error: BackendError) => void;
  readonly reply: Promise<Reply>;

  constructor(readonly request: Request) {
    this.reply = new Promise((resolve, reject) => {
      this.answer = resolve;
      this.fail = reject;
    });
  }
}

type AcquireRequest = Parameters<FlightBackend['acquire']>[0];
type ReleaseRequest = Parameters<FlightBackend['release']>[0];
type Busy = Extract<FlightReply, { readonly acquired: false }>;

describe('the callers of a single flight in one process', () => {
  let runtime: VirtualRuntime;
  let logger: RecordingLogger;
  let services: Services;
  let acquires: Asked<AcquireRequest, FlightReply>[];
  let releases: Asked<ReleaseRequest, FlightReleaseReply>[];
  let joins: Asked<FlightRun, boolean>[];
  /** The owners that were released without a result. */
  let freed: string[];
  let subscriptions: number;
  /** The types of locks for which somebody has listened, and how. */
  let listeners: [type: string, wake: (wake: Wake) => void][];
  let wake: (wake: Wake) => void;
  let idle: number;
  let errors: Error[];
  let queue: FlightQueue;
  beforeEach(() => {
    runtime = new VirtualRuntime();
    logger = new RecordingLogger();
    [acquires, releases, joins, freed, errors] = [[], [], [], [], []];
    [subscriptions, idle, listeners] = [0, 0, []];
    const noted = <Request, Reply>(list: Asked<Request, Reply>[]) => {
      return (request: Request) => {
        const asked = new Asked<Request, Reply>(request);
        list.push(asked);
        return asked.reply;
      };
    };
    const byHand = {
      flights: { acquire: noted(acquires), release: noted(releases), mayJoin: noted(joins) },
      release: async ({ owner }: { owner: string }) => {
        freed.push(owner);
        return { released: true, resent: false };
      },
      renew: async () => true,
      subscribe: (_key: string, type: string, _client: string, listener: (wake: Wake) => void) => {
        subscriptions++;
        listeners.push([type, listener]);
        if (type === 'flight') wake = listener;
        return { ready: new Promise(() => {}), close: () => void subscriptions-- };
      },
    };
    const memory = new MemoryBackend({ runtime, store: new MemoryStore() });
    services = new Services({
      ...ENGINE_DEFAULTS,
      backend: new Proxy(memory, { get: (target, name) => Reflect.get(byHand, name) ?? Reflect.get(target, name) }),
      runtime,
      logger,
      clientId: 'client',
      watchdogTimeout: ms(30_000),
      waiterTimeout: ms(5_000),
      shutdownTimeout: ms(0),
    });
    services.events.on('error', (error) => void errors.push(error));
    queue = new FlightQueue(services, 'price', 'lock:price', () => void idle++);
  });

  class Call {
    outcome: HeldLock | SharedResult | Error | undefined;
    readonly waiter: FlightWaiter;

    constructor(options: object) {
      const times = { waitTime: FOREVER, outageTimeout: FOREVER, leaseTime: ms(30_000) };
      const defaults = { ...DEFAULT_TERMS, ...times, type: 'flight', onLost: 'throw', release: 'confirmed' } as const;
      const terms = toFlightTerms(options, 'singleFlight()', (others) => toTerms(others, defaults, 'singleFlight()'));
      this.waiter = new FlightWaiter(
        'price',
        services.newOwner,
        terms,
        runtime,
        (granted) => {
          this.outcome = granted;
          if (granted instanceof HeldLock) granted.share(SHARE);
        },
        (error) => {
          this.outcome = error;
        },
      );
    }

    get held(): HeldLock {
      expect(this.outcome).toBeInstanceOf(HeldLock);
      return this.outcome as HeldLock;
    }
  }
  const SHARE = { terms: {}, lose: () => {}, requestEnd: () => {} } as unknown as LockShare;

  const enqueue = (options: object = {}): Call => {
    const call = new Call(options);
    queue.enqueue(call.waiter);
    return call;
  };
  const leavable = (options: object = {}) => {
    const controller = new AbortController();
    return { call: enqueue({ ...options, signal: controller.signal }), abort: () => controller.abort() };
  };
  const busy = async (reading: number, others: Partial<Busy> = {}, asked = acquires.at(-1)) => {
    asked?.answer({ acquired: false, remaining: -1, holder: 'other:1', reading, ...others } as Busy);
    await runtime.settle();
  };
  const grant = async (token = 7) => {
    acquires.at(-1)?.answer({ acquired: true, token, reserved: 0 });
    await runtime.settle();
  };
  const fail = async (error: BackendError) => {
    acquires.at(-1)?.fail(error);
    await runtime.settle();
  };
  const message = async () => {
    wake({ kind: 'message' });
    await runtime.settle();
  };
  /** What another run has stored. Callers that asked before the reading 150 may have it. */
  const shared = (value = '"theirs"') => ({
    result: { value, run: 'other:1', ended: 150, before: 150, kept: 150 },
    age: 0,
  });
  const ownerAsked = () => acquires.at(-1)?.request.owner;
  /** A run of this process. */
  const running = async (options: object = {}) => {
    const runner = enqueue(options);
    await grant();
    return runner.held;
  };
  /** The body of a run ends, and its lock is given back. */
  const end = (held: HeldLock, outcome: Parameters<FlightQueue['bodyEnded']>[1]) => {
    queue.bodyEnded(held, outcome);
    return giveBack(queue, held);
  };
  const answerRelease = async (released: FlightReleaseReply['released'] = 'now') => {
    releases.at(-1)?.answer({ released, resent: false });
    await runtime.settle();
  };

  describe('while another process runs', () => {
    it('ask with what they accept', () => {
      const call = enqueue({ leaseTime: '5s', keepFor: '1m', maxSize: 99 });
      expect(acquires.map(({ request }) => request)).toEqual([
        {
          key: 'lock:price',
          owner: call.waiter.owner,
          leaseTime: 5_000,
          begin: undefined,
          keepFor: 60_000,
          maxSize: 99,
        },
      ]);
      expect(queue.isAsking).toBe(true);
    });

    it('ask one after another, each as soon as it comes, and then rest', async () => {
      enqueue();
      enqueue();
      expect(acquires).toHaveLength(1);
      await busy(100);
      expect(acquires).toHaveLength(2);
      expect(acquires[1].request.begin).toBeUndefined();
      await busy(200);
      await runtime.advance(20_000);
      expect([acquires.length, queue.isAsking, subscriptions]).toEqual([2, false, 1]);
      enqueue();
      expect(acquires).toHaveLength(3);
    });

    it('ask for the first caller after a message, with the reading of its first answer', async () => {
      const first = enqueue();
      enqueue();
      await busy(100);
      await busy(200);
      await message();
      expect(acquires[2].request).toMatchObject({ owner: first.waiter.owner, begin: 100 });
      await busy(300);
      await runtime.advance(1_000);
      expect(acquires).toHaveLength(3);
      await message();
      expect(acquires[3].request).toMatchObject({ owner: first.waiter.owner, begin: 100 });
    });

    it('listen for the release of a lock of another type, too', async () => {
      enqueue();
      await busy(100, { heldAs: 'reentrant' });
      expect(listeners.map(([type]) => type).sort()).toEqual(['flight', 'reentrant']);
      const [, hear] = listeners.find(([type]) => type === 'reentrant') ?? [];
      hear?.({ kind: 'message' });
      expect(acquires).toHaveLength(2);
    });

    it('do not listen if nobody waits after the answer', async () => {
      enqueue({ waitTime: 0 });
      await busy(100);
      expect([listeners, idle]).toEqual([[], 1]);
    });

    it('ask at once if a result of which another one has heard is not for them', async () => {
      const small = enqueue({ maxSize: 3 });
      await busy(100);
      enqueue({ keepFor: '1h' });
      await busy(300, { ...shared(), result: { ...shared().result, kept: 9e9 } });
      expect(acquires).toHaveLength(3);
      expect(acquires[2].request).toMatchObject({ owner: small.waiter.owner, begin: 100 });
    });

    it('ask again when the lease of the other one has ended', async () => {
      enqueue();
      await busy(100, { remaining: 500 });
      await runtime.advance(490);
      expect(acquires).toHaveLength(1);
      await runtime.advance(20);
      expect(acquires).toHaveLength(2);
    });

    it('have the reading of an answer in common if they had come when it was asked for', async () => {
      enqueue();
      const second = enqueue();
      await fail(refused());
      await runtime.advance(100);
      expect(acquires).toHaveLength(2);
      await busy(100);
      expect(acquires).toHaveLength(2);
      expect(second.waiter.begin).toBe(100);
    });

    it('get its result if they had asked before, all at once', async () => {
      const calls = [enqueue(), enqueue()];
      await busy(100);
      await busy(120);
      await message();
      await busy(300, shared());
      expect(calls.map(({ outcome }) => outcome)).toEqual(Array(2).fill({ value: '"theirs"', run: 'other:1' }));
      expect([acquires.length, idle, subscriptions, runtime.timers]).toEqual([3, 1, 0, 0]);
    });

    it('get its result by their own terms, and the others ask again', async () => {
      const first = enqueue();
      await busy(100);
      const small = enqueue({ maxSize: 3 });
      await busy(120);
      const late = enqueue();
      await busy(200);
      await message();
      await busy(300, shared());
      expect([first.outcome, small.outcome, late.outcome]).toEqual([expect.anything(), undefined, undefined]);
      expect(acquires).toHaveLength(5);
      expect(acquires[4].request).toMatchObject({ owner: small.waiter.owner, begin: 120 });
    });

    it('get a kept result if it is recent enough for them', async () => {
      const kept = { result: { value: '1', run: 'other:1', ended: 0, before: 0, kept: 900_000 }, age: 500_000 };
      const [first, patient, other] = [enqueue({ keepFor: 600 }), enqueue({ keepFor: 600 }), enqueue({ keepFor: 400 })];
      await busy(100);
      await busy(100);
      await busy(100);
      await message();
      await busy(300, kept);
      expect([first, patient, other].map(({ outcome }) => outcome !== undefined)).toEqual([true, true, false]);
    });

    it('do not get a kept result whose age is not known', async () => {
      const { result } = { result: { value: '1', run: 'other:1', ended: 0, before: 0, kept: 900_000 } };
      enqueue({ keepFor: 600 });
      const patient = enqueue({ keepFor: 600 });
      await busy(100);
      await busy(100);
      await message();
      await busy(300, { result });
      expect(patient.outcome).toBeUndefined();
    });

    it('get no result that was asked for before they came', async () => {
      enqueue();
      await busy(100);
      await message();
      const late = enqueue({ keepFor: '1h' });
      await busy(300, { ...shared(), result: { ...shared().result, kept: 9e9 } });
      expect(late.outcome).toBeUndefined();
      expect(acquires).toHaveLength(3);
      expect(acquires[2].request).toMatchObject({ owner: late.waiter.owner, begin: undefined });
    });

    it('get a result although the caller that asked for it has left', async () => {
      const { abort } = leavable();
      const second = enqueue();
      await busy(100);
      await busy(100);
      await message();
      abort();
      await busy(300, shared());
      expect(second.outcome).toEqual({ value: '"theirs"', run: 'other:1' });
    });

    it('get an error that names the holder when their time ends', async () => {
      const call = enqueue({ waitTime: 1_000 });
      await busy(100, { remaining: 5_000 });
      await runtime.advance(1_100);
      expect(call.outcome).toBeInstanceOf(LockBusyError);
      expect(call.outcome).toMatchObject({ holder: 'other:1', remainingTime: 4_000 });
      expect([idle, subscriptions, runtime.timers]).toEqual([1, 0, 0]);
    });

    it('are refused after one question if they try once, and the others are not', async () => {
      const waiting = enqueue();
      await busy(100);
      const tried = enqueue({ waitTime: 0 });
      expect(acquires).toHaveLength(2);
      const later = enqueue({ waitTime: 0 });
      await busy(200);
      expect(tried.outcome).toBeInstanceOf(LockBusyError);
      expect([later.outcome, waiting.outcome, acquires.length]).toEqual([undefined, undefined, 3]);
      await busy(300);
      expect(later.outcome).toBeInstanceOf(LockBusyError);
    });

    it('ask under another owner if the backend has released theirs', async () => {
      const call = enqueue();
      const first = ownerAsked();
      await busy(100, { spent: true });
      await message();
      expect(ownerAsked()).not.toBe(first);
      expect(ownerAsked()).toBe(call.waiter.owner);
      const second = ownerAsked();
      await busy(200);
      await message();
      expect(ownerAsked()).toBe(second);
    });

    it('ask under another owner if a copy of their request may still arrive', async () => {
      enqueue();
      const first = ownerAsked();
      await busy(100, { validUntil: 5_000 });
      await message();
      expect(ownerAsked()).not.toBe(first);
      expect(freed).toContain(first);
    });

    it('discard the queue when the last of them leaves', async () => {
      const { abort } = leavable();
      await busy(100);
      abort();
      await runtime.advance(1_000);
      expect([idle, subscriptions, runtime.timers]).toEqual([1, 0, 0]);
    });

    it('are in the log if they wait for long', async () => {
      enqueue();
      await busy(100);
      await runtime.advance(31_000);
      expect(logger.warnings).toEqual([
        expect.stringMatching(/^A caller has waited for the single flight 'price' for over 30 s; held by /),
      ]);
    });
  });

  it('are in the log if their request has no answer for long, or if they joined a run that is long', async () => {
    const held = await running();
    enqueue();
    await runtime.advance(31_000);
    expect(logger.warnings).toHaveLength(1);
    expect(logger.warnings[0]).toContain("A caller has waited for the single flight 'price' for over 30 s; held by ");
    expect(logger.warnings[0]).toContain(held.owner);
    const other = new FlightQueue(services, 'stock', 'lock:stock', () => {});
    other.enqueue(new Call({}).waiter);
    await runtime.advance(31_000);
    expect(logger.warnings).toHaveLength(2);
  });

  it.each([
    ['another process runs', 'begin'],
    ['one of them runs', 'joins'],
  ] as const)('are not searched again for each of those that leave while %s', async (_, field) => {
    const isHere = field === 'joins';
    enqueue();
    const abort = new AbortController();
    const stays = enqueue();
    for (let i = 0; i < 100; i++) enqueue({ signal: abort.signal });
    if (isHere) {
      await grant();
      joins[0].answer(true);
      await runtime.settle();
    } else {
      await busy(1);
      await busy(2);
    }
    let visits = 0;
    const value = stays.waiter[field];
    Object.defineProperty(stays.waiter, field, { get: () => ++visits && value, set: () => {} });
    abort.abort();
    await runtime.settle();
    expect([queue.waiting.length, acquires.length, joins.length]).toEqual(isHere ? [1, 1, 1] : [2, 2, 0]);
    expect(visits).toBeLessThan(10);
  });

  describe('after a failure', () => {
    it('ask again after pauses that grow, and under another owner if the lock may have been taken', async () => {
      enqueue();
      const owners = [ownerAsked()];
      for (const error of [refused(), unknown(), refused()]) {
        const before = acquires.length;
        await fail(error);
        while (acquires.length === before) await runtime.advance(1);
        owners.push(ownerAsked());
      }
      expect(owners[1]).toBe(owners[0]);
      expect(owners[2]).not.toBe(owners[1]);
      expect(owners[3]).toBe(owners[2]);
      expect(freed).toContain(owners[1]);
    });

    it('do not ask for a caller that arrives meanwhile, unless it tries once', async () => {
      enqueue();
      await fail(refused());
      enqueue();
      expect(acquires).toHaveLength(1);
      const tried = enqueue({ waitTime: 0 });
      expect(acquires).toHaveLength(2);
      await fail(refused());
      expect(tried.outcome).toBeInstanceOf(LockUnavailableError);
    });

    it('are refused if they try once and were asked for, or if their time ends', async () => {
      const call = enqueue({ waitTime: 20 });
      const tried = enqueue({ waitTime: 0 });
      await fail(refused());
      expect(tried.outcome).toBeUndefined();
      await fail(refused());
      expect(tried.outcome).toBeInstanceOf(LockUnavailableError);
      expect(acquires).toHaveLength(2);
      await runtime.advance(25);
      expect(call.outcome).toBeInstanceOf(LockUnavailableError);
    });

    it('pause behind one who tries once', async () => {
      const tried = enqueue({ waitTime: 0 });
      enqueue();
      await fail(refused());
      expect(tried.outcome).toBeInstanceOf(LockUnavailableError);
      expect(acquires).toHaveLength(1);
      await runtime.advance(100);
      expect(acquires).toHaveLength(2);
    });

    it('report the first of several failures', async () => {
      enqueue();
      await fail(refused());
      await runtime.advance(100);
      await fail(refused());
      expect(errors).toEqual([expect.any(LockUnavailableError)]);
      expect(errors[0].message).toContain('the connection is closed');
    });

    it('are refused if it lasts, one after another, and nothing is reported beside that', async () => {
      const [first, second] = [enqueue(), enqueue()];
      await fail(new BackendError('no permission', 'denied', 'refused'));
      expect([first.outcome, second.outcome]).toEqual([expect.any(LockUnavailableError), undefined]);
      expect([acquires.length, errors]).toEqual([2, []]);
    });

    it('are busy again after an answer', async () => {
      const call = enqueue({ waitTime: 1_000 });
      await fail(refused());
      await runtime.advance(100);
      await busy(100);
      await runtime.advance(1_000);
      expect(call.outcome).toBeInstanceOf(LockBusyError);
    });
  });

  describe('of which one runs', () => {
    it('hold the lock on its terms', async () => {
      const call = enqueue({ leaseTime: '5s' });
      await grant(42);
      expect(call.held).toMatchObject({ name: 'price', key: 'lock:price', type: 'flight', token: 42, fixed: true });
      expect(queue.holders).toEqual([call.held]);
      expect([queue.isAsking, idle]).toEqual([false, 0]);
    });

    it('keep the lock until it is released', async () => {
      await running();
      await runtime.advance(100);
      expect([acquires.length, services.watchdog.guards(queue.holders[0])]).toEqual([1, true]);
    });

    it('give the lock back if the caller who got it has left', async () => {
      const { abort } = leavable();
      const owner = ownerAsked() as string;
      abort();
      await grant();
      expect([freed, releases.length, idle]).toEqual([[owner], 0, 1]);
    });

    it('join it if they come while it runs, after one question for all of a time', async () => {
      const held = await running();
      const calls = [enqueue(), enqueue()];
      expect(joins.map(({ request }) => request)).toEqual([{ key: 'lock:price', owner: held.owner, token: 7 }]);
      expect(queue.isAsking).toBe(true);
      joins[0].answer(true);
      await runtime.settle();
      expect(joins).toHaveLength(2);
      joins[1].answer(true);
      await runtime.settle();
      expect([joins.length, queue.isAsking]).toEqual([2, false]);
      const released = end(held, { value: '"ours"' });
      expect(calls.map(({ outcome }) => outcome)).toEqual([undefined, undefined]);
      await answerRelease();
      expect(await released).toBe('released');
      expect(calls.map(({ outcome }) => outcome)).toEqual(Array(2).fill({ value: '"ours"', run: held.owner }));
      await runtime.advance(1_000);
      expect([acquires.length, idle, runtime.timers]).toEqual([1, 1, 0]);
    });

    it('join it without a question if they had come before it was asked for', async () => {
      enqueue();
      const second = enqueue();
      await fail(refused());
      await runtime.advance(100);
      await grant();
      const [held] = queue.holders;
      expect(joins).toEqual([]);
      void end(held, { value: '1' });
      await answerRelease();
      expect(second.outcome).toEqual({ value: '1', run: held.owner });
    });

    it('join it after one question if they came while it was asked for', async () => {
      enqueue();
      const calls = [enqueue(), enqueue({ waitTime: 0 }), enqueue()];
      await grant();
      expect(joins).toHaveLength(1);
      joins[0].answer(true);
      await runtime.settle();
      expect(joins).toHaveLength(1);
      void end(queue.holders[0], { value: '1' });
      await answerRelease();
      expect([calls[0].outcome, calls[2].outcome]).toEqual(Array(2).fill(expect.objectContaining({ value: '1' })));
    });

    it.each<[string, (asked: Asked<FlightRun, boolean>) => void]>([
      ['the backend says so', ({ answer }) => answer(false)],
      ['the backend does not answer', ({ fail }) => fail(unknown())],
    ])('do not join it if %s, and wait for the next run', async (_, answer) => {
      const held = await running();
      const call = enqueue();
      answer(joins[0]);
      await runtime.settle();
      expect([joins.length, acquires.length]).toEqual([1, 1]);
      void end(held, { value: '1' });
      await answerRelease();
      expect(call.outcome).toBeUndefined();
      expect(ownerAsked()).toBe(call.waiter.owner);
    });

    it('do not join it if its end comes before the answer', async () => {
      const held = await running();
      const call = enqueue();
      void end(held, { value: '1' });
      await answerRelease();
      expect([call.outcome, acquires.length]).toEqual([undefined, 1]);
      joins[0].answer(true);
      await runtime.settle();
      expect(acquires).toHaveLength(2);
      await grant(8);
      expect(call.held.token).toBe(8);
    });

    it('do not join it if its body has ended', async () => {
      const held = await running();
      queue.bodyEnded(held, { value: '1' });
      const call = enqueue();
      expect(joins).toEqual([]);
      void giveBack(queue, held);
      await answerRelease();
      expect(call.outcome).toBeUndefined();
      expect(acquires).toHaveLength(2);
    });

    it('ask nothing while its release has no answer', async () => {
      const held = await running();
      void end(held, { value: '1' });
      enqueue();
      expect([queue.isAsking, acquires.length, services.watchdog.guards(held)]).toEqual([true, 1, false]);
      await answerRelease();
      expect(acquires).toHaveLength(2);
    });

    it('are refused while it runs, and until its release is answered, if they try once', async () => {
      const held = await running();
      const during = enqueue({ waitTime: 0 });
      void end(held, { value: '1' });
      const after = enqueue({ waitTime: 0 });
      for (const { outcome } of [during, after]) {
        expect(outcome).toBeInstanceOf(LockBusyError);
        expect(outcome).toMatchObject({ holder: held.owner });
      }
      expect([joins, acquires.length]).toEqual([[], 1]);
    });

    it('are refused if they try once and came while it was asked for', async () => {
      enqueue();
      const tried = [enqueue({ waitTime: 0 }), enqueue({ waitTime: 0 })];
      await grant();
      for (const { outcome } of tried) expect(outcome).toBeInstanceOf(LockBusyError);
      expect(joins).toEqual([]);
    });

    it('get its error if it fails', async () => {
      const held = await running();
      const calls = [enqueue(), enqueue(), enqueue()];
      joins[0].answer(true);
      await runtime.settle();
      joins[1].answer(true);
      await runtime.settle();
      const failure = new Error('no prices today');
      await end(held, { error: failure });
      await runtime.settle();
      expect(calls.map(({ outcome }) => outcome)).toEqual([failure, failure, failure]);
      expect([acquires.length, releases.length, freed, idle]).toEqual([1, 0, [held.owner], 1]);
    });

    it('ask again if its lock was gone, or if its body has not ended', async () => {
      for (const isGone of [true, false]) {
        const held = await running();
        const call = enqueue();
        joins.at(-1)?.answer(true);
        await runtime.settle();
        const before = acquires.length;
        if (isGone) {
          void end(held, { value: '1' });
          await answerRelease('gone');
        } else await giveBack(queue, held);
        await runtime.settle();
        expect([call.outcome, acquires.length]).toEqual([undefined, before + 1]);
        await busy(100, { result: { ...shared().result, before: 1 } });
      }
    });

    it('ask again although they rested when another one got the lock', async () => {
      const resting = enqueue();
      await busy(100);
      enqueue();
      await grant();
      void end(queue.holders[0], { value: '1' });
      await answerRelease('gone');
      expect([resting.outcome, acquires.length]).toEqual([undefined, 3]);
    });

    it('do not name a holder of before as the present one', async () => {
      const call = enqueue({ waitTime: 1_000 });
      await busy(100);
      enqueue();
      await grant();
      queue.forget(queue.holders[0]);
      expect(acquires).toHaveLength(3);
      await runtime.advance(1_100);
      expect(call.outcome).toMatchObject({ name: 'LockBusyError', holder: undefined });
    });

    it('report a failure after it as a new one', async () => {
      enqueue();
      await fail(refused());
      await runtime.advance(100);
      await grant();
      queue.forget(queue.holders[0]);
      enqueue();
      await fail(refused());
      expect(errors).toHaveLength(2);
    });

    it('ask again when it has lost its lock, whose end then changes nothing', async () => {
      const held = await running();
      const call = enqueue();
      joins[0].answer(true);
      await runtime.settle();
      queue.forget(held);
      expect([queue.holders, acquires.length]).toEqual([[], 2]);
      await grant(8);
      expect(call.held.token).toBe(8);
      const other = enqueue();
      joins[1].answer(true);
      await runtime.settle();
      queue.bodyEnded(held, { value: 'lost' });
      const next = enqueue();
      expect(joins).toHaveLength(3);
      void end(call.held, { value: '2' });
      await answerRelease();
      expect(other.outcome).toMatchObject({ value: '2' });
      expect(next.outcome).toBeUndefined();
    });

    it('are not disturbed by the loss of a lock that was left to lapse before', async () => {
      const abandoned = await running();
      queue.forget(abandoned);
      const held = await running();
      const call = enqueue();
      joins[0].answer(true);
      await runtime.settle();
      abandoned.lost = new Error('lost') as never;
      queue.lost(abandoned);
      expect(queue.holders).toEqual([held]);
      void end(held, { value: '2' });
      await answerRelease();
      expect(call.outcome).toMatchObject({ value: '2' });
    });

    it('are discarded when its lock was lost and nobody waits', async () => {
      const held = await running();
      queue.forget(held);
      expect([queue.holders, idle]).toEqual([[], 1]);
    });

    it('say that its lock was lost', async () => {
      const lost: unknown[] = [];
      services.events.on('lost', ({ owner }) => lost.push(owner));
      const held = await running();
      held.lost = new Error('lost') as never;
      queue.lost(held);
      expect([lost, queue.holders, idle]).toEqual([[held.owner], [], 1]);
    });

    it('release a lost lock in the background when its body ends', async () => {
      const held = await running();
      held.lost = new Error('lost') as never;
      queue.forget(held);
      expect(end(held, { value: '1' })).toBe('gone');
      await runtime.settle();
      expect([releases.length, freed]).toEqual([0, [held.owner]]);
    });
  });
});
