import { Attempt } from '../../../lib/engine/ask/attempt.js';
import { LockLostError } from '../../../lib/engine/errors.js';
import {
  HeldLock,
  type LockKeeper,
  type LockShare,
  type ReleaseListener,
  type ReleaseOutcome,
  tellOutcome,
} from '../../../lib/engine/hold/held-lock.js';
import { FOREVER } from '../../../lib/engine/terms/duration.js';
import { openVirtualWorld } from '../../support/lock-world.js';

const TERMS = {
  onLost: 'throw',
  release: 'confirmed',
  reentry: true,
  holdAtMost: FOREVER,
  group: '',
  method: '',
} as const;

/** Records what happens to a held lock. */
class Keeper implements LockKeeper {
  readonly name = 'order';
  readonly key = 'lock:order';
  readonly log: string[] = [];

  giveBack(_held: HeldLock, listener: ReleaseListener): Promise<void> | undefined {
    this.log.push('given back');
    return tellOutcome(listener, 'released');
  }

  forget(): void {
    this.log.push('forgotten');
  }

  lost(): void {
    this.log.push('lost');
  }
}

describe('a held lock', () => {
  const world = openVirtualWorld();

  const open = async (reserved = 0) => {
    const { locks, runtime } = await world.process();
    const { services } = locks.engine;
    await runtime.advance(500);
    const attempt = new Attempt(services, 'lock:order', 'ann:1', { type: 'reentrant', leaseTime: 10_000 });
    await runtime.advance(70);
    const reply = { acquired: true, token: 7, reserved } as const;
    await attempt.outcome(Promise.resolve(reply), () => {});
    const keeper = new Keeper();
    const losses: Error[][] = [];
    const held = new HeldLock(keeper, attempt, false, reply, runtime.monotonic());
    const share = (): LockShare => {
      const lost: Error[] = [];
      losses.push(lost);
      const made: LockShare = { terms: TERMS, requestEnd: () => {}, lose: (error) => void lost.push(error) };
      held.share(made);
      return made;
    };
    return { held, keeper, losses, share, now: services.clock.now() };
  };

  it('lasts for its lease from when it was requested, or confirmed', async () => {
    const { held, now } = await open();
    expect(held.leaseEnd).toBe(10_500);
    held.confirm(now, 60_000);
    expect(held.leaseEnd).toBe(60_570);
  });

  it('is given back with the last of its shares, in whatever order they end', async () => {
    const { held, keeper, share, now } = await open();
    const [first, second, third] = [share(), share(), share()];
    expect(held.shares).toEqual([first, second, third]);
    const outcomes: ReleaseOutcome[] = [];
    const listener = { waits: true, releaseSettled: (outcome: ReleaseOutcome) => void outcomes.push(outcome) };
    expect([held.drop(second, listener, now), outcomes]).toEqual([undefined, ['released']]);
    expect(held.shares).toEqual([first, third]);
    held.drop(first, listener, now);
    expect(held.shares).toEqual([third]);
    expect(keeper.log).toEqual([]);
    held.drop(third, listener, now);
    expect(held.shares).toEqual([]);
    expect(keeper.log).toEqual(['given back']);
  });

  it('is lost once, for each of its shares', async () => {
    const { held, keeper, losses, share } = await open();
    share();
    share();
    const [error, later] = ['gone', 'gone again'].map((message) => new LockLostError(message, 'order'));
    held.lose(error);
    held.lose(later);
    expect(held.lost).toBe(error);
    expect(losses).toEqual([[error], [error]]);
    expect(keeper.log).toEqual(['lost']);
  });

  it('is kept until the latest moment that one of its shares asks for', async () => {
    const { held } = await open();
    held.keep(900);
    held.keep(700);
    expect(held.keepUntil).toBe(900);
    held.keep(901);
    expect(held.keepUntil).toBe(901);
  });

  it('is handed off with the next of its reserved tokens', async () => {
    const { held } = await open(2);
    expect([held.token, held.handedOff]).toEqual([7, false]);
    held.noteHandOff();
    held.noteHandOff();
    expect([held.token, held.handedOff]).toEqual([9, true]);
    expect(held.block).toMatchObject({ size: 2, left: 0 });
  });

  it('has no tokens for others if none were reserved', async () => {
    const { held } = await open();
    held.noteHandOff();
    expect(held.block).toBeUndefined();
    expect(held.token).toBe(8);
  });

  it('that is left to lapse is forgotten by its keeper, and not renewed, but its shares stay', async () => {
    const { held, keeper, share } = await open();
    const made = share();
    const reason = new Error('shutdown');
    held.abandon(reason);
    expect(held).toMatchObject({ abandoned: reason, fixed: true, lost: undefined });
    expect(held.shares).toEqual([made]);
    expect(keeper.log).toEqual(['forgotten']);
  });

  it('hands the moment and the listener of the last share to its keeper, and returns what that returns', async () => {
    const { held, keeper, share, now } = await open();
    const listener = { waits: false, releaseSettled: () => {} };
    const [first, second] = [share(), share()];
    held.drop(first, listener, now);
    const outcome = Promise.resolve();
    const given: unknown[] = [];
    keeper.giveBack = (...args: unknown[]) => {
      given.push(...args);
      return outcome as never;
    };
    expect(held.drop(second, listener, now)).toBe(outcome);
    expect(given).toEqual([held, listener, now]);
  });

  it('can be lost by others after all its shares were forgotten', async () => {
    const { held, keeper, losses, share } = await open();
    share();
    share();
    held.forgetShares();
    expect(held.shares).toEqual([]);
    held.lose(new LockLostError('gone', 'order'));
    expect(losses).toEqual([[], []]);
    expect(keeper.log).toEqual(['lost']);
  });
});
