import { LockLostError } from '../../../lib/engine/errors.js';
import { HeldPermitLease } from '../../../lib/engine/synchronizers/permit-lease.js';
import type { Synchronizer } from '../../../lib/engine/synchronizers/synchronizer.js';

const SEMAPHORE = { name: 'mail', what: "the semaphore 'mail'" } as Synchronizer;
const lossOf = (message: string) => new LockLostError(message, 'mail');

describe('a permit while a body runs that needs it', () => {
  let permit: HeldPermitLease;
  beforeEach(() => {
    permit = new HeldPermitLease('id', SEMAPHORE);
  });

  it('is held, and has the id of the permit', () => {
    expect([permit.id, permit.held, permit.signal.aborted, permit.loss]).toEqual(['id', true, false, undefined]);
    expect(() => permit.assertHeld()).not.toThrow();
  });

  it('is no longer held when it is lost, and aborts its signal with the loss', () => {
    const loss = lossOf('it was lost');
    permit.lose(loss);
    expect(permit.held).toBe(false);
    expect(permit.signal.aborted).toBe(true);
    expect(permit.signal.reason).toBe(loss);
    expect(() => permit.assertHeld()).toThrow(loss);
  });

  it('is lost for its first reason', () => {
    const first = lossOf('first');
    permit.lose(first);
    permit.lose(lossOf('second'));
    permit.released(false);
    expect(permit.loss).toBe(first);
    expect(permit.signal.reason).toBe(first);
  });

  it('is not lost when it is released', () => {
    permit.released(true);
    expect([permit.held, permit.loss, permit.signal.aborted]).toEqual([false, undefined, false]);
    expect(() => permit.assertHeld()).not.toThrow();
  });

  it('was lost if it no longer existed at its release', () => {
    permit.released(false);
    expect(permit.held).toBe(false);
    expect(permit.loss).toBeInstanceOf(LockLostError);
    expect(permit.loss).toMatchObject({
      lockName: 'mail',
      message:
        "A permit of the semaphore 'mail' was lost: it no longer existed at its release, so others may have had it before",
    });
    expect(() => permit.assertHeld()).toThrow(LockLostError);
  });
});
