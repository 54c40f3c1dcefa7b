import { EventLoopBlocks } from '../../../lib/engine/hold/event-loop-blocks.js';
import type { LossReason } from '../../../lib/engine/hold/loss-reasons.js';

const LEASE = 30_000;
const THIRD = LEASE / 3;

describe('a blocked event loop', () => {
  const open = () => {
    const warnings: string[] = [];
    return { warnings, blocks: new EventLoopBlocks(LEASE, (message) => void warnings.push(message)) };
  };

  it('is worth a warning when the heartbeat is late by more than a third of the lease', () => {
    const { blocks, warnings } = open();
    blocks.compare(1_000, 1_000 + THIRD);
    expect(warnings).toEqual([]);
    blocks.compare(1_000, 1_000 + THIRD + 1);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain('was blocked for 10.0 s');
    expect(warnings[0]).toContain('watchdogTimeout: 30.0 s');
  });

  it('is worth another warning a minute after the last one, however often it was blocked in between', () => {
    const { blocks, warnings } = open();
    blocks.compare(0, 20_000);
    for (const end of [40_000, 60_000, 79_999]) blocks.compare(end - 15_000, end);
    expect(warnings).toHaveLength(1);
    blocks.compare(65_000, 80_000);
    expect(warnings).toHaveLength(2);
    blocks.compare(120_000, 139_999);
    expect(warnings).toHaveLength(2);
  });

  describe('explains why a lease ended', () => {
    /** A lease that was confirmed after a second. It certainly lasts until 30,698 ms. */
    const lease = (fixed = false) => ({
      fixed,
      confirmed: { monotonic: 1_000, wall: 0 },
      validFor: LEASE,
    });
    const failure = new Error('refused');

    it.each<[string, number, number]>([
      ['at the moment at which it ended', 5_000, 30_698],
      ['past its end', 5_000, 40_000],
    ])('if the block lasted until %s', (_, from, until) => {
      const { blocks } = open();
      blocks.compare(from, until);
      for (const noticed of ['unanswered', 'failed', 'gone'] as const)
        expect(blocks.explain(lease(), noticed, failure)).toEqual({ reason: 'blocked', blockedFor: until - from });
    });

    it.each<[LossReason, LossReason]>([
      ['unanswered', 'unanswered'],
      ['failed', 'failed'],
      ['gone', 'too-late'],
      ['gone-at-release', 'too-late'],
      ['ended', 'too-late'],
    ])('only in part if the block ended earlier: what was noticed as %s is then %s', (noticed, reason) => {
      const { blocks } = open();
      blocks.compare(5_000, 30_697);
      expect(blocks.explain(lease(), noticed, failure)).toEqual({ reason, error: failure, blockedFor: 25_697 });
    });

    it('but not if the block was over when it was confirmed', () => {
      const { blocks } = open();
      const without = { reason: 'too-late', error: undefined, blockedFor: undefined };
      expect(blocks.explain(lease(), 'too-late')).toEqual(without);
      blocks.compare(-50_000, 1_000);
      expect(blocks.explain(lease(), 'too-late')).toEqual(without);
      blocks.compare(-50_000, 1_001);
      expect(blocks.explain(lease(), 'too-late').blockedFor).toBe(51_001);
    });

    it.each<[LossReason, LossReason]>([
      ['ended', 'ended'],
      ['gone-at-release', 'ended'],
      ['ended-unnoticed', 'ended-unnoticed'],
    ])('but not a fixed one, which would have ended anyway: what was noticed as %s is then %s', (noticed, reason) => {
      const { blocks } = open();
      blocks.compare(5_000, 40_000);
      expect(blocks.explain(lease(true), noticed)).toEqual({ reason, blockedFor: 35_000 });
    });
  });
});
