import { EventEmitter, on } from 'node:events';
import { PassThrough, Readable } from 'node:stream';
import { BehaviorSubject, defer, from, type Observable, of, Subject } from 'rxjs';
import type { Lease } from '../../../lib/engine/terms/lease.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { type LockProcess, openVirtualWorld } from '../../support/lock-world.js';
import { errorOf } from '../../support/section.js';
import { until } from '../../support/until.js';

type Process = Pick<LockProcess, 'locks' | 'logger'>;
type Body = () => unknown;

async function lead({ locks, logger }: Process, body: Body): Promise<unknown> {
  let result: unknown;
  const leadership = locks.lead('x', {
    onElected: async () => {
      result = await body();
      return result;
    },
  });
  await until(() => result !== undefined && !leadership.isLeader);
  await leadership.stop();
  if (logger.errors.length > 0) throw new Error(logger.errors[0]);
  return result;
}

async function runAndRelease(acquired: Promise<Lease>, body: Body): Promise<unknown> {
  await using lease = await acquired;
  return await lease.run(body);
}

const serializer = { serialize: () => 'text', deserialize: (text: string) => text };

/** Every way in which the library runs a body in a lock, and how errors name it. */
const WAYS: Record<string, readonly [(process: Process, body: Body) => Promise<unknown>, string]> = {
  withLock: [({ locks }, body) => locks.withLock('x', body), "withLock() of 'x'"],
  'withLock of several names': [({ locks }, body) => locks.withLock(['x', 'y'], body), "withLock() of 'x, y'"],
  'lease.run': [({ locks }, body) => runAndRelease(locks.acquire('x'), body), "lease.run() of 'x'"],
  'run of a multi-lock': [
    ({ locks }, body) => runAndRelease(locks.getMultiLock(locks.getLock('x'), locks.getLock('y')).lock(), body),
    "lease.run() of 'x, y'",
  ],
  singleFlight: [({ locks }, body) => locks.singleFlight('x', serializer, body), "singleFlight() of 'x'"],
  'withPermit of a semaphore': [
    ({ locks }, body) => locks.getSemaphore('x', { permits: 1 }).withPermit(body),
    "withPermit() of the semaphore 'x'",
  ],
  'withPermit of a permit-expirable semaphore': [
    ({ locks }, body) => locks.getPermitExpirableSemaphore('x', { permits: 1 }).withPermit(body),
    "withPermit() of the semaphore 'x'",
  ],
  onElected: [lead, "onElected of lead('x')"],
};

async function* rows() {
  yield 1;
}

function* numbers() {
  yield 1;
}

/** A cursor, as those of databases. */
const cursor = () => ({
  next: async () => ({ done: true, value: undefined }),
  [Symbol.asyncIterator]() {
    return this;
  },
});

const NOT_RUN: Record<string, readonly [Body, string]> = {
  'an Observable': [() => defer(async () => 1), 'an Observable, .* lastValueFrom'],
  'an Observable in a promise': [async () => from([1]), 'an Observable, .* lastValueFrom'],
  'an async generator': [rows, 'an async generator, .* read it inside'],
  'a generator': [numbers, 'a generator, .* read it inside'],
};

const ALLOWED: Record<string, Body> = {
  'a Subject': () => new Subject(),
  'a BehaviorSubject': async () => new BehaviorSubject(1),
  'a stream of Node': () => Readable.from([1]),
  'a writable stream': () => new PassThrough(),
  'a stream of the web': () => new ReadableStream(),
  'what can be subscribed to': () => ({ subscribe() {} }),
  'an Observable inside': () => ({ items: of(1), list: [rows()] }),
  'an async iterable without next': () => ({ [Symbol.asyncIterator]: rows }),
  'an iterator of a list': () => [1].values(),
  'a function': () => rows,
  nothing: () => null,
};

describe.each(Object.keys(WAYS))('the body of %s', (name) => {
  const world = openVirtualWorld();
  const [run, what] = WAYS[name];
  const free = async (locks: LockService) => {
    const inspection = await locks.inspect('x');
    return 'locked' in inspection ? !inspection.locked : true;
  };

  it.each(Object.keys(NOT_RUN))('may not return %s, because it would run without the lock', async (kind) => {
    const process = await world.process();
    const [body, message] = NOT_RUN[kind];
    const error = await errorOf(run(process, body));
    expect(error.message).toMatch(new RegExp(`${escaped(what)} returned ${message}`));
    expect(await free(process.locks)).toBe(true);
  });

  it('is warned of when it returns a cursor, once for each place', async () => {
    const process = await world.process();
    for (let n = 0; n < 2; n++) await run(process, cursor);
    const expected = expect.stringMatching(new RegExp(`${escaped(what)}.* returned an iterator, such as a cursor`));
    expect(process.logger.warnings.filter((warning) => warning.includes('a cursor'))).toEqual([expected]);
  });

  // A flight's results are copies, so these do not pass through it in any case.
  it.each(Object.keys(ALLOWED))('may return %s', async (kind) => {
    const process = await world.process();
    const body = ALLOWED[kind];
    if (name === 'onElected') expect(await lead(process, async () => ({ nested: await body() }))).toBeDefined();
    else await run(process, body);
    expect(process.logger.warnings).toEqual([]);
  });
});

describe('the warning of a cursor', () => {
  const world = openVirtualWorld();

  it('names the place of the call', async () => {
    const { locks, logger } = await world.process();
    const readOrders = async () => await locks.withLock('x', cursor);
    await readOrders();
    expect(logger.warnings).toEqual([
      expect.stringMatching(/called at readOrders \(.*body-result\.test\.ts:\d+:\d+\),/),
    ]);
  });

  it('comes for each place', async () => {
    const { locks, logger } = await world.process();
    const one = async () => await locks.withLock('x', cursor);
    const other = async () => await locks.withLock('x', cursor);
    for (const call of [one, other, one, other]) await call();
    expect(logger.warnings).toHaveLength(2);
  });

  it('comes also where a promise was passed on, so that the place is not known', async () => {
    const { locks, logger } = await world.process();
    const emitter = new EventEmitter();
    await Promise.resolve().then(() => locks.withLock('x', () => on(emitter, 'row')));
    expect(logger.warnings).toEqual([expect.stringMatching(/^withLock\(\) of 'x'.* returned an iterator/)]);
  });
});

describe('an interceptor', () => {
  const world = openVirtualWorld();

  it('that hands its handler over does not run it', async () => {
    const { locks } = await world.process();
    let handled = 0;
    const next = { handle: (): Observable<number> => defer(async () => ++handled) };
    await errorOf(locks.withLock('x', () => next.handle()));
    expect(handled).toBe(0);
  });
});

function escaped(text: string): string {
  return text.replace(/[()]/g, '\\$&');
}
