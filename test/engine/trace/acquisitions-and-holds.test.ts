import { tracingChannel } from 'node:diagnostics_channel';
import type { HolderClient } from '../../../lib/engine/describe-holder.js';
import {
  LockAbortedError,
  LockBusyError,
  LockConfigurationError,
  LockDeadlockError,
  LockKeyError,
  LockLostError,
  LockSupersededError,
  LockUnavailableError,
} from '../../../lib/engine/errors.js';
import type { AcquireMessage, HoldMessage } from '../../../lib/engine/events/channels.js';
import type { LockLease } from '../../../lib/engine/lease/lock-lease.js';
import { LockScope, lockScopes } from '../../../lib/engine/scope/lock-scope.js';
import { ShareGates } from '../../../lib/engine/scope/share-gate.js';
import type { Services } from '../../../lib/engine/services.js';
import type { AcquisitionTerms } from '../../../lib/engine/terms/lock-options.js';
import { isTraced, traceAcquisition } from '../../../lib/engine/trace/trace-acquisition.js';
import { holdEnded, runInHold, tokenOf, traceHold } from '../../../lib/engine/trace/trace-hold.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';
import { errorOf } from '../../support/section.js';

const acquireChannel = tracingChannel<unknown, AcquireMessage>('nestjs-redis-lock:acquire');
const holdChannel = tracingChannel<unknown, HoldMessage>('nestjs-redis-lock:hold');

let runtime: VirtualRuntime;
let emitted: unknown[][];
let warnings: string[];
let listens: boolean;
/** What was published, with the outcome at that moment. */
let steps: [step: string, outcome: unknown][];
let messages: (AcquireMessage | HoldMessage)[];
let unsubscribe: (() => void)[];
beforeEach(() => {
  runtime = new VirtualRuntime();
  [emitted, warnings, steps, messages, unsubscribe] = [[], [], [], [], []];
  listens = false;
});
afterEach(() => {
  for (const end of unsubscribe) end();
});

const services = () =>
  ({
    events: {
      failures: listens,
      emit: (...event: unknown[]) => void emitted.push(event),
      logger: { warn: (line: string) => void warnings.push(line) },
    },
    runtime,
  }) as unknown as Services;

function subscribe(channel: typeof acquireChannel | typeof holdChannel): void {
  const note = (step: string) => (message: unknown) => {
    messages.push(message as HoldMessage);
    steps.push([step, (message as HoldMessage).outcome]);
  };
  const names = ['start', 'end', 'asyncStart', 'asyncEnd', 'error'] as const;
  const subscribers = Object.fromEntries(names.map((name) => [name, note(name)]));
  channel.subscribe(subscribers as never);
  unsubscribe.push(() => channel.unsubscribe(subscribers as never));
}

interface LeaseParts {
  readonly names?: readonly string[];
  readonly tokens?: readonly number[];
  readonly handedOff?: boolean;
  /** The names that an outer scope holds. */
  readonly outer?: readonly string[];
  readonly live?: boolean;
}

function leaseOf({ names = ['order'], tokens = [7], handedOff = false, outer = [], live = true }: LeaseParts = {}) {
  const lease = {
    owner: 'client:1',
    owners: new Map(names.map((name, i) => [name, `client:${i + 1}`])),
    tokens: new Map(names.map((name, i) => [name, tokens[i] ?? tokens[0]])),
    superseded: 2,
    live,
    released: false,
    detached: false,
    loss: undefined as Error | undefined,
    gates: new ShareGates([]),
    locks: [] as object[],
  };
  lease.locks = names.map((name, i) => ({
    name,
    shares: outer.includes(name) ? [{}, lease] : [lease, {}],
    handedOff: handedOff && i === names.length - 1,
  }));
  return lease as unknown as LockLease;
}

const TERMS = { type: 'fair', group: 'orders', method: 'Orders.pay', skips: false } as AcquisitionTerms;

describe('an acquisition', () => {
  /** Acquires in 30 ms. */
  const acquire = async (lease: unknown, names = ['order'], terms = TERMS) => {
    const ask = async () => {
      runtime.block(30);
      if (lease instanceof Error) throw lease;
      return lease as LockLease;
    };
    return traceAcquisition(services(), names, terms, ask);
  };
  const last = () => messages[messages.length - 1] as AcquireMessage;

  it('is traced if somebody listens to failures, to acquisitions or to holds', () => {
    expect(isTraced(services())).toBe(false);
    listens = true;
    expect(isTraced(services())).toBe(true);
    listens = false;
    for (const channel of [acquireChannel, holdChannel]) {
      subscribe(channel);
      expect(isTraced(services())).toBe(true);
      unsubscribe.pop()?.();
      expect(isTraced(services())).toBe(false);
    }
  });

  it('begins with what is known of it', async () => {
    const seen: object[] = [];
    const start = (message: unknown) => void seen.push({ ...(message as object) });
    acquireChannel.start.subscribe(start);
    unsubscribe.push(() => acquireChannel.start.unsubscribe(start));
    await acquire(leaseOf(), ['a', 'b']);
    expect(seen[0]).toEqual({
      name: 'a, b',
      names: ['a', 'b'],
      type: 'fair',
      group: 'orders',
      method: 'Orders.pay',
      standsBy: false,
    });
  });

  it('ends with its lease', async () => {
    subscribe(acquireChannel);
    await runtime.advance(100);
    const lease = leaseOf();
    expect(await acquire(lease)).toBe(lease);
    expect(steps).toEqual([
      ['start', undefined],
      ['end', undefined],
      ['asyncStart', 'acquired'],
      ['asyncEnd', 'acquired'],
    ]);
    expect(last()).toMatchObject({
      outcome: 'acquired',
      waited: 30,
      reentry: false,
      shared: false,
      handedOff: false,
      superseded: 2,
      owner: 'client:1',
      owners: lease.owners,
      fencingToken: 7,
      holderClient: undefined,
    });
  });

  it.each<[string, LeaseParts, Partial<AcquireMessage>]>([
    ['of a caller who got the lock from another one', { handedOff: true }, { handedOff: true, reentry: false }],
    [
      'of several locks of which one came from another caller',
      { names: ['a', 'b'], handedOff: true },
      { handedOff: true },
    ],
    ['of locks that outer scopes hold', { outer: ['order'], handedOff: true }, { handedOff: false, reentry: true }],
    ['of several locks of which outer scopes hold some', { names: ['a', 'b'], outer: ['a'] }, { reentry: false }],
    ['of several locks with different tokens', { names: ['a', 'b'], tokens: [7, 8] }, { fencingToken: undefined }],
    ['of several locks with one token', { names: ['a', 'b'] }, { fencingToken: 7 }],
  ])('says what it brought: %s', async (_, parts, expected) => {
    subscribe(acquireChannel);
    const lease = leaseOf(parts);
    await acquire(lease, [...lease.owners.keys()]);
    expect(last()).toMatchObject(expected);
  });

  it('is followed by the hold of its lease', async () => {
    subscribe(holdChannel);
    const lease = leaseOf();
    await acquire(lease);
    await runtime.settle();
    expect(steps.map(([step]) => step)).toEqual(['start', 'end']);
    expect((messages[0] as HoldMessage).acquisition).toMatchObject({ outcome: 'acquired', owner: 'client:1' });
    holdEnded(lease, false);
  });

  it('of a single flight may end with the result of another run', async () => {
    subscribe(acquireChannel);
    subscribe(holdChannel);
    const shared = { value: '"theirs"', run: 'other:1' };
    expect(await acquire(shared)).toBe(shared);
    expect(last()).toMatchObject({ outcome: 'shared', shared: true, owner: 'other:1', waited: 30, reentry: undefined });
    await runtime.settle();
    expect(steps).toHaveLength(4);
  });

  const client = { application: 'shop' } as HolderClient;
  const busy = new LockBusyError('busy', 'order', -1, undefined, false, client);
  it.each<[string, Error]>([
    ['busy', busy],
    ['superseded', new LockSupersededError('superseded', 'order', -1, undefined)],
    ['aborted', new LockAbortedError('aborted', 'order')],
    ['unavailable', new LockUnavailableError('unavailable', 'order')],
    ['deadlock', new LockDeadlockError('deadlock', 'order', [])],
    ['lost', new LockLostError('lost', 'order')],
    ['refused', new LockKeyError('key', 'order')],
    ['refused', new LockConfigurationError('options')],
  ])('fails with the outcome %s', async (outcome, error) => {
    listens = true;
    subscribe(acquireChannel);
    expect(await errorOf(acquire(error, ['a', 'b']))).toBe(error);
    expect(steps.map(([step]) => step)).toEqual(['start', 'end', 'error', 'asyncStart', 'asyncEnd']);
    expect(last()).toMatchObject({ outcome, waited: 30, error });
    expect(emitted).toEqual([
      [
        'failed',
        {
          name: 'a, b',
          names: ['a', 'b'],
          type: 'fair',
          group: 'orders',
          method: 'Orders.pay',
          outcome,
          waited: 30,
          error,
        },
      ],
    ]);
  });

  it('says who holds the lock if it was busy', async () => {
    subscribe(acquireChannel);
    await errorOf(acquire(busy));
    expect(last().holderClient).toBe(client);
    await errorOf(acquire(new LockLostError('lost', 'order')));
    expect(last().holderClient).toBeUndefined();
  });

  it('is skipped, and not busy, if its decorator provides a result then', async () => {
    listens = true;
    const terms = { ...TERMS, skips: true };
    await errorOf(acquire(busy, ['order'], terms));
    await errorOf(acquire(new LockLostError('lost', 'order'), ['order'], terms));
    expect(emitted.map(([, event]) => (event as { outcome: string }).outcome)).toEqual(['skipped', 'lost']);
  });

  it('emits no event of a failure if nobody listens', async () => {
    subscribe(acquireChannel);
    await errorOf(acquire(busy));
    expect(emitted).toEqual([]);
  });

  it('is run by a subscriber who wants that', async () => {
    const order: string[] = [];
    const start = (message: unknown) => {
      (message as AcquireMessage).run = (work) => {
        order.push('run');
        return work();
      };
    };
    acquireChannel.start.subscribe(start);
    unsubscribe.push(() => acquireChannel.start.unsubscribe(start));
    await acquire(leaseOf());
    expect([order, warnings]).toEqual([['run'], []]);
  });
});

describe('the hold of a lock', () => {
  const acquisition = { name: 'order', names: ['order'], type: 'fair', group: 'orders', method: '', reentry: false };
  const hold = (lease: LockLease, others: object = {}) =>
    traceHold(services(), lease, { ...acquisition, fencingToken: 7, ...others } as unknown as AcquireMessage);
  const run = (lease: LockLease, body: () => unknown = () => 'done') =>
    runInHold(lease, new LockScope(lease as never, undefined), body);

  it('begins in the next turn, and ends with the lease', async () => {
    subscribe(holdChannel);
    const lease = leaseOf({ names: ['a', 'b'], outer: ['a'] });
    hold(lease);
    expect(steps).toEqual([]);
    await runtime.settle();
    expect(steps).toEqual([
      ['start', undefined],
      ['end', undefined],
    ]);
    await runtime.advance(500);
    holdEnded(lease, false);
    holdEnded(lease, false);
    expect(steps.slice(2)).toEqual([
      ['asyncStart', 'released'],
      ['asyncEnd', 'released'],
    ]);
    expect(messages[0]).toMatchObject({
      ...acquisition,
      owner: 'client:1',
      owners: lease.owners,
      fencingToken: 7,
      taken: ['b'],
      held: 500,
      outcome: 'released',
    });
    expect(new Set(messages).size).toBe(1);
    await runtime.settle();
    expect(steps).toHaveLength(4);
  });

  it('begins around the body of the lease, which runs in its scope', async () => {
    subscribe(holdChannel);
    const lease = leaseOf();
    hold(lease);
    const seen: unknown[] = [];
    const result = run(lease, () => {
      seen.push(
        steps.map(([step]) => step),
        lockScopes.getStore()?.lease,
      );
      return 'done';
    });
    expect([result, seen]).toEqual(['done', [['start'], lease]]);
    expect(steps.map(([step]) => step)).toEqual(['start', 'end']);
    expect(run(lease)).toBe('done');
    await runtime.settle();
    expect(steps).toHaveLength(2);
    holdEnded(lease, false);
  });

  it('begins and ends around a body that fails', () => {
    subscribe(holdChannel);
    const lease = leaseOf();
    hold(lease);
    const failure = new Error('body');
    const fails = () => {
      throw failure;
    };
    expect(() => run(lease, fails)).toThrow(failure);
    expect(steps.map(([step]) => step)).toEqual(['start', 'end']);
    holdEnded(lease, false);
  });

  it('is run by a subscriber who wants that', () => {
    const start = (message: unknown) => {
      (message as HoldMessage).run = () => {
        throw new Error('tracer');
      };
    };
    holdChannel.start.subscribe(start);
    unsubscribe.push(() => holdChannel.start.unsubscribe(start));
    const lease = leaseOf();
    hold(lease);
    expect(run(lease)).toBe('done');
    expect(warnings).toEqual([
      expect.stringContaining("A subscriber of 'nestjs-redis-lock:hold' set a run() that failed"),
    ]);
    holdEnded(lease, false);
  });

  it('begins before it ends, also if both happen in one turn', async () => {
    subscribe(holdChannel);
    const lease = leaseOf();
    hold(lease);
    holdEnded(lease, false);
    await runtime.settle();
    expect(steps.map(([step]) => step)).toEqual(['start', 'end', 'asyncStart', 'asyncEnd']);
  });

  it('ends with the loss of the lock, or with its detachment', () => {
    subscribe(holdChannel);
    const [lost, detached] = [leaseOf(), leaseOf()];
    hold(lost);
    hold(detached);
    lost.loss = new LockLostError('lost', 'order');
    holdEnded(lost, true);
    expect(steps.map(([step]) => step)).toEqual(['start', 'end', 'error', 'asyncStart', 'asyncEnd']);
    expect(messages.at(-1)).toMatchObject({ outcome: 'lost', error: lost.loss });
    detached.detached = true;
    holdEnded(detached, false);
    expect(messages.at(-1)).toMatchObject({ outcome: 'detached' });
    expect('error' in (messages.at(-1) as object)).toBe(false);
  });

  it('is not traced if nobody subscribes, or if the lease has ended already', async () => {
    const unseen = leaseOf();
    hold(unseen);
    subscribe(holdChannel);
    const over = leaseOf({ live: false });
    hold(over);
    for (const lease of [unseen, over]) {
      expect(run(lease, () => lockScopes.getStore()?.lease)).toBe(lease);
      holdEnded(lease, false);
    }
    await runtime.settle();
    expect(steps).toEqual([]);
  });

  it('is traced beside others', () => {
    subscribe(holdChannel);
    const [one, other] = [leaseOf(), leaseOf()];
    hold(one);
    hold(other);
    holdEnded(one, false);
    holdEnded(one, false);
    run(other);
    holdEnded(other, false);
    expect(steps.map(([step]) => step)).toEqual([
      'start',
      'end',
      'asyncStart',
      'asyncEnd',
      'start',
      'end',
      'asyncStart',
      'asyncEnd',
    ]);
  });

  it('is a re-entry if its acquisition was', () => {
    subscribe(holdChannel);
    const lease = leaseOf({ outer: ['order'] });
    hold(lease, { reentry: true });
    holdEnded(lease, false);
    expect(messages[0]).toMatchObject({ reentry: true, taken: [] });
    const unknown = leaseOf();
    hold(unknown, { reentry: undefined });
    holdEnded(unknown, false);
    expect(messages.at(-1)).toMatchObject({ reentry: false });
  });

  it('has the token of its locks if it is the same for all', () => {
    expect(tokenOf(leaseOf({ names: ['a', 'b'], tokens: [5] }))).toBe(5);
    expect(tokenOf(leaseOf({ names: ['a', 'b'], tokens: [5, 6] }))).toBeUndefined();
  });
});
