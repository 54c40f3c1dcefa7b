import fc from 'fast-check';
import type { LockType } from '../../../lib/backends/lock-backend.js';
import type { Lease } from '../../../lib/engine/terms/lease.js';
import { leftovers, NOTHING, openVirtualWorld, type VirtualProcess } from '../../support/lock-world.js';
import { type Asking, type Fate, nameFor, QueueModel } from './queue-model.js';

const SEED = Number(process.env.PROPERTY_SEED ?? 20_250_101);
const LONG = Number(process.env.CHAOS_LONG ?? 1);

/** One call of a service, and its outcome. */
interface RealCall {
  fate: Fate;
  lease?: Lease;
  readonly controller: AbortController;
}

class Service {
  readonly calls: RealCall[] = [];
  private lastTokens = new Map<string, number>();

  constructor(readonly process: VirtualProcess) {}

  ask({ name, type }: Asking, waitTime: number | undefined): void {
    const call: RealCall = { fate: 'waits', controller: new AbortController() };
    const { signal } = call.controller;
    this.calls.push(call);
    this.process.locks.acquire(name, { type, signal, waitTime: waitTime ?? Number.POSITIVE_INFINITY }).then(
      (lease) => {
        call.lease = lease;
        call.fate = 'holds';
        lease.signal.addEventListener('abort', () => {
          call.fate = 'lost';
        });
        expect(lease.fencingToken).toBeGreaterThan(this.lastTokens.get(name) ?? 0);
        this.lastTokens.set(name, lease.fencingToken);
      },
      (error: Error) => {
        call.fate = error.name === 'LockAbortedError' ? 'aborted' : error.name === 'LockBusyError' ? 'busy' : 'lost';
      },
    );
  }

  async release(id: number): Promise<void> {
    const call = this.calls[id];
    call.fate = 'released';
    await this.process.runtime.until(call.lease!.release());
  }
}

class ServiceCommand implements fc.AsyncCommand<QueueModel, Service> {
  constructor(
    private readonly title: string,
    private readonly act: (model: QueueModel, service: Service) => Promise<unknown>,
  ) {}

  check(): boolean {
    return true;
  }

  async run(model: QueueModel, service: Service): Promise<void> {
    await this.act(model, service);
    await service.process.runtime.settle();
    expect(service.calls.map(({ fate }) => fate)).toEqual(model.fates);
  }

  toString(): string {
    return this.title;
  }
}

/** The nth call with this fate. */
function among(model: QueueModel, fate: Fate, nth: number): number | undefined {
  const ids = model.fates.flatMap((each, id) => (each === fate ? [id] : []));
  return ids[nth % ids.length];
}

const ask = fc
  .tuple(
    fc.constantFrom<LockType>('reentrant', 'fenced', 'fair', 'read', 'read', 'write'),
    fc.constantFrom(undefined, undefined, undefined, 0, 250, 1_000),
  )
  .map(
    ([type, waitTime]) =>
      new ServiceCommand(`ask(${type}, ${waitTime})`, async (model, service) => {
        const deadline = waitTime === undefined ? Number.POSITIVE_INFINITY : model.now + waitTime;
        const asking = { id: service.calls.length, name: nameFor(type), type, deadline };
        service.ask(asking, waitTime);
        model.ask(asking, waitTime === 0);
      }),
  );

const release = fc.nat(5).map(
  (nth) =>
    new ServiceCommand(`release(${nth})`, async (model, service) => {
      const id = among(model, 'holds', nth);
      if (id === undefined) return;
      await service.release(id);
      model.release(id);
    }),
);

const abort = fc.nat(5).map(
  (nth) =>
    new ServiceCommand(`abort(${nth})`, async (model, service) => {
      const id = among(model, 'waits', nth);
      if (id === undefined) return;
      service.calls[id].controller.abort();
      model.abort(id);
    }),
);

const force = fc.constantFrom<LockType>('reentrant', 'fenced', 'fair', 'read').map(
  (type) =>
    new ServiceCommand(`force(${type})`, async (model, { process }) => {
      const name = nameFor(type);
      expect(await process.runtime.until(process.locks.forceRelease(name))).toBe(model.force(name));
    }),
);

const elapse = fc.integer({ min: 1, max: 1_500 }).map(
  (time) =>
    new ServiceCommand(`elapse(${time})`, async (model, { process }) => {
      await process.runtime.advance(time);
      model.elapse(time);
    }),
);

describe('a lock service whose callers do anything in any order', () => {
  const world = openVirtualWorld();

  it('serves them in the order of their arrival, readers together, and leaves nothing behind', async () => {
    const commands = fc.commands([ask, ask, release, release, abort, force, elapse], { maxCommands: 50, size: 'max' });
    const property = fc.asyncProperty(commands, async (drawn) => {
      world.renew();
      const process = await world.process();
      const service = new Service(process);
      const model = new QueueModel();
      await fc.asyncModelRun(() => ({ model, real: service }), drawn);
      for (;;) {
        const id = among(model, 'holds', 0);
        if (id === undefined) break;
        await service.release(id);
        model.release(id);
        await process.runtime.settle();
      }
      expect(service.calls.map(({ fate }) => fate)).toEqual(model.fates);
      await process.runtime.advance(5_000);
      expect(leftovers(process)).toEqual(NOTHING);
    });
    await fc.assert(property, { seed: SEED, numRuns: 300 * LONG });
  }, 600_000);
});
