import type { LockLease } from '../../../../lib/engine/lease/lock-lease.js';
import type { LockOptions } from '../../../../lib/engine/terms/lock-options.js';
import type { RecordedLease } from '../../history-recorder.js';
import { longBlock } from '../faults.js';
import type { Caller } from './caller.js';
import type { Errand } from './errands.js';

/** Runs a body under a lock. */
const body: Errand = async (caller) => {
  const { name, type } = caller.any();
  await caller.recorder.withLock(name, { type }, () => caller.stay());
};

/** Re-entry: one child, or several at once, which exclude each other. */
const reenter: Errand = async (caller) => {
  const { name, type } = caller.any();
  await caller.recorder.withLock(name, { type }, async (outer) => {
    const children = caller.chance.whole(1, 3);
    await Promise.all(Array.from({ length: children }, () => child(caller, name, { type }, outer)));
    await caller.stay();
  });
};

/** A writer that keeps its read lock after its write lock was released. */
const downgrade: Errand = async (caller) => {
  const name = caller.name('page');
  const outer = await caller.recorder.acquire(name, { type: 'write' });
  if (outer === undefined) return;
  await caller.stay();
  const reading = await outer.lease
    .run(() => caller.recorder.acquire(name, { type: 'read' }, outer.call))
    .catch(() => undefined);
  if (caller.chance.chance(0.7)) {
    await outer.release();
    await caller.stay();
    await reading?.release();
  } else {
    await caller.stay();
    await reading?.release();
    await outer.release();
  }
};

/** A writer that repeatedly takes the read lock, sometimes for longer than that lock's lease. */
const readAgain: Errand = async (caller) => {
  const { recorder, chance, process } = caller;
  const name = caller.name('page');
  const outer = await recorder.acquire(name, { type: 'write' });
  if (outer === undefined) return;
  for (let round = 0; round < 3; round++) {
    const leaseTime = chance.whole(100, 200);
    const reading = await outer.lease
      .run(() => recorder.acquire(name, { type: 'read', leaseTime }, outer.call))
      .catch(() => undefined);
    await process.sleep(leaseTime * chance.between(0, 1.2));
    // Not awaited, so that the next read lock may be requested while this one is released.
    void reading?.release();
  }
  await outer.release();
};

/** Work that nobody awaits continues after its scope has ended. */
const leak: Errand = async (caller) => {
  const { name, type } = caller.any();
  let leaked: Promise<void> | undefined;
  await caller.recorder.withLock(name, { type }, async (outer) => {
    leaked = (async () => {
      await caller.stay();
      await child(caller, name, { type }, outer);
    })();
    await caller.stay();
  });
  await leaked;
};

/**
 * Several locks, one of which the scope already holds. A caller that waits for the other one has a time limit, because
 * scopes can block each other.
 */
const severalInside: Errand = async (caller) => {
  await caller.recorder.withLock('order', {}, async (outer) => {
    await child(caller, ['order', 'parcel'], { waitTime: caller.chance.whole(0, 100) }, outer);
    await caller.stay();
  });
};

/** Keeps its lock for a while after the body has ended. */
const holdAtLeast: Errand = async (caller) => {
  const settings = { holdAtLeast: caller.chance.between(5, 300) };
  const leaseTime = caller.chance.chance(0.5) ? { leaseTime: 400 } : {};
  await caller.recorder.withLock(caller.name(), { waitTime: 100, ...leaseTime }, () => caller.stay(), settings);
};

/** A body that blocks the event loop for longer than some leases. */
const block: Errand = async (caller) => {
  const { name, type } = caller.any();
  const options = caller.chance.chance(0.5) ? { type, leaseTime: 150 } : { type };
  await caller.recorder.withLock(name, options, async () => {
    caller.process.block(caller.chance.between(10, 800));
    await caller.process.sleep(0);
    await caller.stay();
  });
};

/** A body that blocks the event loop for up to ten leases. */
const outlive: Errand = async (caller) => {
  const { recorder, process, chance } = caller;
  const { name, type } = caller.any();
  const settings = chance.chance(0.3) ? { holdAtLeast: chance.between(5, 300) } : {};
  const body = async (recorded: RecordedLease) => {
    process.block(longBlock(recorder.locks.engine.settings.watchdogTimeout, chance));
    await process.sleep(0);
    await caller.stay();
    if (recorded.lease.held && chance.chance(0.2))
      await recorded.lease.extend(chance.whole(100, 2_000)).catch(() => {});
  };
  await recorder.withLock(name, { type }, body, settings);
};

/** Several scopes of one lease at once, each with a child. These children still exclude each other. */
const runs: Errand = async (caller) => {
  const { name, type } = caller.any();
  const outer = await caller.recorder.acquire(name, { type });
  if (outer === undefined) return;
  const scopes = Array.from({ length: caller.chance.whole(2, 3) }, () =>
    outer.lease.run(() => child(caller, name, { type }, outer)).catch(() => {}),
  );
  await Promise.all(scopes);
  await outer.release();
};

/** Grandchildren that nobody awaits, beside the next children. */
const grandchild: Errand = async (caller) => {
  const { name, type } = caller.any();
  const some = (outer: RecordedLease) =>
    Promise.all(Array.from({ length: caller.chance.whole(1, 2) }, () => child(caller, name, { type }, outer)));
  let leaked: Promise<unknown> | undefined;
  await caller.recorder.withLock(name, { type }, async (outer) => {
    await child(caller, name, { type }, outer, async (inner) => {
      leaked = some(inner);
      await caller.stay();
    });
    await some(outer);
  });
  await leaked;
};

/** Re-entry right after the event loop was blocked, for longer than some leases. */
const overdue: Errand = async (caller) => {
  const { name, type } = caller.any();
  const options = caller.chance.chance(0.5) ? { type, leaseTime: 150 } : { type };
  await caller.recorder.withLock(name, options, async (outer) => {
    caller.process.block(caller.chance.between(10, 1_500));
    await caller.process.sleep(0);
    await child(caller, name, { type }, outer);
  });
};

export async function child(
  caller: Caller,
  names: string | readonly string[],
  options: LockOptions,
  outer: RecordedLease,
  body: (inner: RecordedLease) => Promise<void> = () => caller.stay(),
): Promise<void> {
  const { recorder } = caller;
  const call = recorder.sent(names, options);
  const acquired = recorder.locks.acquire(names, options) as Promise<LockLease>;
  const lease = await acquired.catch((error: Error) => recorder.refused(call, error));
  if (lease === undefined) return;
  // If the scope had ended, or its lock was lost, the child has acquired a lock of its own.
  const shares = lease.locks.some((lock) => outer.lease.locks.includes(lock));
  recorder.granted(call, lease, shares ? outer.call : undefined);
  await lease.run(() => body({ call, lease, release: () => lease.release() })).catch(() => {});
  recorder.releaseAsked(call, lease);
  await recorder.released(call, lease.release());
}

export const SCOPED_ERRANDS = {
  body,
  reenter,
  downgrade,
  readAgain,
  leak,
  severalInside,
  holdAtLeast,
  block,
  runs,
  grandchild,
  overdue,
  outlive,
};
