import assert from 'node:assert/strict';
import type { ReleaseReply } from '../../../lib/backends/lock-backend.js';
import { Attempt } from '../../../lib/engine/ask/attempt.js';
import {
  HeldLock,
  type LockKeeper,
  outcomeOf,
  type ReleaseListener,
  type ReleaseOutcome,
  UNAWAITED,
} from '../../../lib/engine/hold/held-lock.js';
import { answeredOutcome, RecallableRelease } from '../../../lib/engine/hold/recallable-release.js';
import { openVirtualWorld } from '../../support/lock-world.js';
import { latch } from '../../support/section.js';
import { answerAfter, refused } from '../../support/watched/watched-backend.js';

const KEEPER: LockKeeper = {
  name: 'order',
  key: 'lock:order',
  giveBack: () => undefined,
  forget: () => {},
  lost: () => {},
};

describe('a release', () => {
  const world = openVirtualWorld();

  const open = async (lateCopiesUntil?: number) => {
    const process = await world.process();
    const { services } = process.locks.engine;
    const attempt = new Attempt(services, KEEPER.key, services.newOwner(), { type: 'reentrant', leaseTime: 10_000 });
    const reply = await services.backend.acquire(attempt);
    if (!reply.acquired) throw new Error('the lock is busy');
    await attempt.outcome(Promise.resolve({ ...reply, validUntil: lateCopiesUntil }), () => {});
    const held = new HeldLock(KEEPER, attempt, false, reply, 0);
    const replies: (ReleaseReply | undefined)[] = [];
    const release = new RecallableRelease(services, held, { releaseAnswered: (_, reply) => void replies.push(reply) });
    return { ...process, services, held, release, replies };
  };

  /** A listener, and what it has heard. */
  const listener = (waits = false): ReleaseListener & { heard: ReleaseOutcome[] } => {
    const heard: ReleaseOutcome[] = [];
    const releaseSettled = (outcome: ReleaseOutcome) => void heard.push(outcome);
    return { heard, waits, releaseSettled };
  };

  /** Sends a release, and waits. */
  const sent = (release: RecallableRelease) => outcomeOf((waiting) => release.send(waiting));

  it('tells its listener that the lock was released, which waits or not', async () => {
    const first = await open();
    expect(await sent(first.release)).toBe('released');
    expect(first.replies).toMatchObject([{ released: true }]);
    const second = await open();
    const listening = listener();
    expect(second.release.send(listening)).toBeUndefined();
    await second.runtime.settle();
    expect(listening.heard).toEqual(['released']);
  });

  it('lets a listener that waits receive the outcome before the waiting ends, or fail', async () => {
    const waiting = listener(true);
    const first = await open();
    const told = first.release.send(waiting);
    expect(waiting.heard).toEqual([]);
    await told;
    expect(waiting.heard).toEqual(['released']);
    const second = await open();
    const refusing = { waits: true, releaseSettled: (outcome: ReleaseOutcome) => assert.fail(outcome) };
    await expect(second.release.send(refusing)).rejects.toThrow('released');
  });

  it('is repeated when there was no answer, and its caller is told so at once', async () => {
    const { release, replies, backend, runtime, locks } = await open();
    backend.disturb(refused, 'release');
    expect(await sent(release)).toBe('unreachable');
    expect(replies).toEqual([undefined]);
    backend.heal();
    await runtime.advance(1_000);
    expect(await locks.isLocked('order')).toBe(false);
  });

  it.each([
    ['once', undefined, 1],
    ['once more if a copy of the acquisition may still be executed', 0, 2],
  ])('is sent %s', async (_, lateCopiesUntil, count) => {
    const { release, backend, runtime } = await open(lateCopiesUntil);
    await runtime.advance(100);
    expect(await sent(release)).toBe('released');
    await runtime.advance(5_000);
    expect(backend.count('release')).toBe(count);
  });

  it('is unsettled until it is answered, unless it is recalled, and again when it is sent after all', async () => {
    const { release, services, backend, runtime } = await open();
    const isUnsettled = () => services.unsettledReleases.nextAnswer(release.owner) !== undefined;
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'release');
    expect(isUnsettled()).toBe(false);
    release.send(UNAWAITED);
    expect(isUnsettled()).toBe(true);
    expect(services.unsettledReleases.answersFor(release.key)).toBeDefined();
    release.queued();
    release.recall();
    expect(isUnsettled()).toBe(false);
    release.resume(UNAWAITED);
    expect([isUnsettled(), release.recallable, release.resumable]).toEqual([true, true, false]);
    answer.open();
    await runtime.settle();
    expect(isUnsettled()).toBe(false);
  });

  it('can be recalled only before it is sent, and sent after all only after that', async () => {
    const { release } = await open();
    expect([release.recallable, release.resumable]).toEqual([false, false]);
    release.queued();
    expect([release.recallable, release.resumable]).toEqual([true, false]);
    release.recall();
    expect([release.recallable, release.resumable]).toEqual([false, true]);
    release.leavesQueue();
    expect([release.recallable, release.resumable]).toEqual([false, false]);
  });

  it('is about the longest of the leases that its owner may have', async () => {
    const { release, held } = await open();
    expect(release.leaseTime).toBe(10_000);
    held.validFor = 60_000;
    expect(release).toMatchObject({ leaseTime: 60_000, key: held.key, type: 'reentrant', owner: held.owner });
  });

  it('names its lock in the log if it is not answered when it is repeated either', async () => {
    const { release, backend, runtime, logger } = await open();
    backend.disturb(refused, 'release');
    await sent(release);
    await runtime.advance(2_000);
    expect(logger.warnings).toEqual([expect.stringContaining("The lock 'order' could not be released in time")]);
    backend.heal();
    await runtime.advance(1_000);
  });

  it.each<[string, boolean, boolean, number, ReleaseOutcome]>([
    ['was there', true, false, 0, 'released'],
    ['was there after its lease', true, false, 20_000, 'released'],
    ['was not there', false, false, 0, 'gone'],
    ['was not there when the request was sent again, because the first copy was executed', false, true, 0, 'released'],
    ['was not there when the request was sent again after the lease', false, true, 9_898, 'gone'],
  ])('has an answer that says whether its owner %s', async (_, found, resent, after, outcome) => {
    const { held, services, runtime } = await open();
    runtime.block(after);
    expect(answeredOutcome(services, held, found, resent)).toBe(outcome);
  });

  describe('that is recalled', () => {
    const recalled = async (listening: ReleaseListener) => {
      const opened = await open();
      const { release, backend } = opened;
      const answer = latch();
      backend.disturb(answerAfter(answer.promise), 'release');
      const told = release.send(listening);
      release.queued();
      expect(release.recallable).toBe(true);
      release.recall();
      expect([release.recallable, release.resumable]).toEqual([false, true]);
      return { ...opened, answer, told };
    };

    it.each<[string, ReleaseOutcome | Promise<ReleaseOutcome>]>([
      ['', 'gone'],
      [', which comes later', Promise.resolve('gone')],
    ])('reports once what became of the lock instead%s', async (_, outcome) => {
      const listening = listener();
      const { release, answer, runtime, replies } = await recalled(listening);
      release.passed(outcome);
      await runtime.settle();
      answer.open();
      await runtime.settle();
      expect(listening.heard).toEqual(['gone']);
      expect(replies).toEqual([]);
    });

    it.each<[string, ReleaseOutcome | Promise<ReleaseOutcome>]>([
      ['', 'gone'],
      [', which comes later', Promise.resolve('gone')],
    ])('reports to a listener that waits what became of the lock instead%s', async (_, outcome) => {
      const waiting = listener(true);
      const { release, answer, told } = await recalled(waiting);
      release.passed(outcome);
      answer.open();
      await told;
      expect(waiting.heard).toEqual(['gone']);
    });

    it('reports its answer to a listener that waits when it is sent after all', async () => {
      const first = listener(true);
      const { release, answer, told } = await recalled(first);
      const second = listener(true);
      release.passed('gone');
      const again = release.resume(second);
      release.leavesQueue();
      answer.open();
      await Promise.all([told, again]);
      expect([first.heard, second.heard]).toEqual([['gone'], ['released']]);
    });

    it('passes what comes of the lock to the listener of the present release alone', async () => {
      const [first, second] = [listener(), listener()];
      const { release, answer, runtime } = await recalled(first);
      release.passed('gone');
      release.resume(second);
      release.recall();
      release.passed(Promise.resolve('unreachable'));
      answer.open();
      await runtime.settle();
      expect([first.heard, second.heard]).toEqual([['gone'], ['unreachable']]);
    });

    it('reports its answer when it is sent after all', async () => {
      const { release, answer, runtime, replies } = await recalled(listener());
      const listening = listener();
      release.passed('released');
      expect(release.resume(listening)).toBeUndefined();
      release.leavesQueue();
      answer.open();
      await runtime.settle();
      expect(listening.heard).toEqual(['released']);
      expect(replies).toMatchObject([{ released: true }]);
    });
  });
});
