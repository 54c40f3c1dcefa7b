import fc from 'fast-check';
import type { Lease } from '../../../lib/engine/terms/lease.js';
import { leftovers, NOTHING, openVirtualWorld, type VirtualProcess } from '../../support/lock-world.js';
import { errorOf } from '../../support/section.js';
import { type ShareFate, ShareModel } from './share-model.js';

const SEED = Number(process.env.PROPERTY_SEED ?? 20_250_101);
const LONG = Number(process.env.CHAOS_LONG ?? 1);
const LEASE = 30_000;

/** Shares of the lock `order`. Each is requested in a scope of its parent, which lasts until the share is given. */
class Shares {
  readonly fates: ShareFate[] = [];
  readonly leases: Lease[] = [];

  constructor(readonly process: VirtualProcess) {}

  ask(parent: number | undefined): void {
    const id = this.fates.push('waits') - 1;
    const { locks } = this.process;
    const acquire = () => locks.acquire('order');
    const given = parent === undefined ? acquire() : this.leases[parent].run(acquire);
    given.then(
      (lease) => {
        this.leases[id] = lease;
        this.fates[id] = 'holds';
      },
      () => {}, // its lock was lost
    );
  }

  async release(id: number): Promise<void> {
    this.fates[id] = 'released';
    await this.leases[id].release();
  }
}

class ShareCommand implements fc.AsyncCommand<ShareModel, Shares> {
  constructor(
    private readonly title: string,
    private readonly act: (model: ShareModel, shares: Shares) => Promise<unknown> | unknown,
  ) {}

  check(): boolean {
    return true;
  }

  async run(model: ShareModel, shares: Shares): Promise<void> {
    await this.act(model, shares);
    await shares.process.runtime.settle();
    expect(shares.fates).toEqual(model.fates);
  }

  toString(): string {
    return this.title;
  }
}

const ask = fc.nat(9).map(
  (nth) =>
    new ShareCommand(`ask(${nth})`, (model, shares) => {
      const { holders } = model;
      // All shares have ended, so there is no lease in which to ask.
      if (holders.length === 0 && model.shares.length > 0) return;
      const parent = holders[nth % holders.length];
      model.ask(parent);
      shares.ask(parent);
    }),
);

const release = fc.nat(9).map(
  (nth) =>
    new ShareCommand(`release(${nth})`, async (model, shares) => {
      const id = model.free[nth % model.free.length];
      if (id === undefined) return;
      model.release(id);
      await shares.release(id);
    }),
);

describe('shares of one lock that are asked for and released in any order', () => {
  const world = openVirtualWorld();

  it('are given as in the model, and none after the lease has ended', async () => {
    const property = fc.asyncProperty(
      fc.commands([ask, ask, release], { maxCommands: 40, size: 'max' }),
      async (commands) => {
        world.renew();
        const [process, other] = [await world.process(), await world.process()];
        const [model, shares] = [new ShareModel(), new Shares(process)];
        await fc.asyncModelRun(() => ({ model, real: shares }), commands);
        const { holders } = model;
        // The holder is blocked for longer than the lease, and another process takes the lock.
        if (holders.length > 0) {
          world.runtime.block(LEASE);
          const taken = await other.locks.tryAcquire('order');
          expect(taken).not.toBeNull();
          for (const id of holders) expect((await errorOf(shares.leases[id].run(() => {}))).name).toBe('LockLostError');
          await taken!.release();
        }
        for (let ended = 0; ended < shares.fates.length; ended++) {
          const id = shares.fates.findIndex((fate, id) => fate === 'holds' && shares.leases[id] !== undefined);
          if (id < 0) break;
          await shares.release(id).catch(() => {});
          await world.runtime.settle();
        }
        await world.runtime.advance(2_000);
        const { timers } = leftovers(process); // of both processes
        expect(leftovers(process)).toEqual({ ...NOTHING, timers });
        await world.tidy();
      },
    );
    await fc.assert(property, { seed: SEED, numRuns: 400 * LONG, endOnFailure: false });
  }, 600_000);
});
