import { type Departing, UnsettledReleases } from '../../../lib/engine/ask/unsettled-releases.js';

class Release implements Departing {
  previous: Departing | undefined;
  next: Departing | undefined;
  whenAnswered: readonly (() => void)[] | undefined;

  constructor(
    readonly owner: string,
    readonly key = 'lock:order',
    readonly underWay = true,
  ) {}
}

describe('releases without an answer', () => {
  const begin = (...releases: Release[]) => {
    const unsettled = new UnsettledReleases();
    for (const release of releases) unsettled.begin(release);
    return unsettled;
  };

  /** Listens to the answer to the release of an owner, and counts the calls. */
  const listen = (unsettled: UnsettledReleases, owner: string | undefined) => {
    const calls = { isExpected: false, count: 0 };
    calls.isExpected = unsettled.onAnswer(owner, () => void calls.count++);
    return calls;
  };

  it('are waited for by all that ask about the owner, until the next answer', () => {
    const [ann, bob] = [new Release('ann:1'), new Release('bob:1')];
    const unsettled = begin(ann, bob);
    const calls = [1, 2].map(() => listen(unsettled, 'bob:1'));
    expect(calls.map(({ isExpected }) => isExpected)).toEqual([true, true]);
    unsettled.answered(ann);
    expect(calls.map(({ count }) => count)).toEqual([0, 0]);
    unsettled.answered(bob);
    unsettled.answered(bob);
    expect(calls.map(({ count }) => count)).toEqual([1, 1]);
  });

  it('are waited for again while they are repeated, but not once they have ended', () => {
    const release = new Release('ann:1');
    const unsettled = begin(release);
    unsettled.answered(release);
    const second = listen(unsettled, 'ann:1');
    expect(second.isExpected).toBe(true);
    unsettled.end(release);
    expect(second.count).toBe(1);
    expect(listen(unsettled, 'ann:1').isExpected).toBe(false);
    expect(unsettled.nextAnswer('ann:1')).toBeUndefined();
  });

  it('are not waited for by those that ask about another owner, or about none', () => {
    expect(listen(begin(), 'ann:1').isExpected).toBe(false);
    const unsettled = begin(new Release('ann:1'));
    expect(listen(unsettled, 'ann:2').isExpected).toBe(false);
    expect(listen(unsettled, undefined).isExpected).toBe(false);
  });

  it('concern a question about their lock while a request is under way', async () => {
    const [ann, bob] = [new Release('ann:1'), new Release('bob:1')];
    const others = [new Release('ann:2', 'lock:stock'), new Release('ann:3', 'lock:order', false)];
    const unsettled = begin(ann, ...others, bob);
    expect(unsettled.answersFor('lock:parcel')).toBeUndefined();
    let isAnswered = false;
    const answers = unsettled.answersFor('lock:order')?.then(() => {
      isAnswered = true;
    });
    unsettled.answered(ann);
    await Promise.resolve();
    expect(isAnswered).toBe(false);
    unsettled.end(bob);
    await answers;
    expect(isAnswered).toBe(true);
    for (const release of [ann, ...others]) unsettled.end(release);
    expect(unsettled.answersFor('lock:order')).toBeUndefined();
  });

  it('may be begun by a listener that is called', () => {
    const release = new Release('ann:1');
    const unsettled = begin(release);
    const calls: boolean[] = [];
    unsettled.onAnswer('ann:1', () => calls.push(unsettled.onAnswer('ann:1', () => calls.push(true))));
    unsettled.answered(release);
    expect(calls).toEqual([true]);
    unsettled.answered(release);
    expect(calls).toEqual([true, true]);
  });

  it('that have ended leave those of other owners', () => {
    const [ann, bob] = [new Release('ann:1'), new Release('bob:1')];
    const unsettled = begin(ann, bob);
    unsettled.end(ann);
    expect(listen(unsettled, 'ann:1').isExpected).toBe(false);
    expect(listen(unsettled, 'bob:1').isExpected).toBe(true);
  });
});
