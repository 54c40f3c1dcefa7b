import type { LockOptions } from '../../../../lib/engine/terms/lock-options.js';
import type { Caller } from './caller.js';
import type { Errand } from './errands.js';
import { child } from './scoped-errands.js';

/** Names of one type. Callers want each of them alone, or together with others. */
const SETS: readonly {
  readonly types: readonly NonNullable<LockOptions['type']>[];
  readonly names: readonly string[];
}[] = [
  { types: ['reentrant'], names: ['stock', 'order', 'parcel'] },
  { types: ['fair'], names: ['queue', 'desk', 'till'] },
  { types: ['fenced'], names: ['ledger', 'journal'] },
  { types: ['read', 'write', 'write'], names: ['page', 'cover'] },
];

function draw({ chance }: Caller) {
  const { types, names } = chance.pick(SETS);
  return { type: chance.pick(types), names };
}

function atLeastTwo({ chance }: Caller, names: readonly string[]): readonly string[] {
  const some = names.filter(() => chance.chance(0.7));
  return some.length < 2 ? names.slice(0, 2) : some;
}

function waitTime({ chance }: Caller): LockOptions {
  return chance.chance(0.3) ? { waitTime: chance.whole(0, 300) } : {};
}

/** All or none. */
const someOf: Errand = async (caller) => {
  const { type, names } = draw(caller);
  const recorded = await caller.recorder.acquire(atLeastTwo(caller, names), { type, ...waitTime(caller) });
  await caller.process.sleep(caller.chance.between(0, 200));
  await recorded?.release();
};

/** Makes one of them busy. */
const oneOf: Errand = async (caller) => {
  const { type, names } = draw(caller);
  const recorded = await caller.recorder.acquire(caller.chance.pick(names), { type });
  await caller.process.sleep(caller.chance.between(0, 200));
  await recorded?.release();
};

/** Takes any lock that is free. */
const tryOneOf: Errand = async (caller) => {
  const { type, names } = draw(caller);
  const recorded = await caller.recorder.tryAcquire(caller.chance.pick(names), { type });
  await caller.stay();
  await recorded?.release();
};

/**
 * Acquires others in the scope of one of them. A caller that waits there has a time limit, because scopes can block
 * each other.
 */
const someInside: Errand = async (caller) => {
  const { type, names } = draw(caller);
  await caller.recorder.withLock(names[0], { type }, async (outer) => {
    await child(caller, atLeastTwo(caller, names), { type, waitTime: caller.chance.whole(0, 100) }, outer);
    await caller.stay();
  });
};

/** Wants two locks. Others keep each of them busy, one of them for longer than a caller may hold the other one. */
const besiege: Errand = async ({ recorder, process, chance }) => {
  const visit = async (name: string) => {
    for (let round = 0; round < 6; round++) {
      const recorded = await recorder.acquire(name);
      await process.sleep(chance.between(10, 50));
      await recorded?.release();
    }
  };
  const stay = async () => {
    await process.sleep(chance.between(200, 500));
    await recorder.withLock('parcel', {}, async (outer) => {
      await process.sleep(chance.between(100, 1_400));
      // Callers that hold the first lock while they wait for the second one give it up in time.
      if (chance.chance(0.5)) await recorder.acquire('order', {}, outer.call).then((recorded) => recorded?.release());
    });
  };
  const both = async () => {
    await process.sleep(chance.between(0, 100));
    const recorded = await recorder.acquire(['order', 'parcel']);
    await recorded?.release();
  };
  await Promise.all([visit('order'), visit('order'), visit('parcel'), visit('parcel'), stay(), both()]);
};

export const SCATTERED_ERRANDS = { someOf, oneOf, tryOneOf, someInside, besiege };
