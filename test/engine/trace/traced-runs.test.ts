import { tracingChannel } from 'node:diagnostics_channel';
import type { AcquireMessage, HoldMessage } from '../../../lib/core.js';
import { Place } from '../../support/places.js';

type Run = NonNullable<AcquireMessage['run']>;

const failure = new Error('the tracer failed');
/** Functions that a subscriber could set as `run`, but must not. */
const WRONG: Readonly<Record<string, unknown>> = {
  'never calls the work': () => undefined,
  'throws before it calls the work': () => {
    throw failure;
  },
  'throws after it has called the work': (work: () => unknown) => {
    work();
    throw failure;
  },
  'gives something else': (work: () => unknown) => {
    work();
    return Promise.resolve('something else');
  },
  'calls the work twice': (work: () => unknown) => {
    work();
    return work();
  },
  'calls the work later': (work: () => unknown) => new Promise((resolve) => setTimeout(resolve, 10)).then(work),
  'is no function': 'run',
};

describe.each(['acquire', 'hold'])("the run of a subscriber of '%s'", (traced) => {
  const channel = tracingChannel<unknown, AcquireMessage | HoldMessage>(`nestjs-redis-lock:${traced}`);
  let place: Place;
  let run: Run | undefined;
  const start = (message: unknown) => {
    (message as AcquireMessage).run = run;
  };
  beforeAll(async () => {
    place = await Place.open('memory');
    channel.start.subscribe(start);
  });
  afterEach(() => place.closeServices());
  afterAll(async () => {
    channel.start.unsubscribe(start);
    await place.close();
  });

  it.each(Object.entries(WRONG))('that %s: the body runs once, and its outcome counts', async (_what, wrong) => {
    const { locks, log } = place.service();
    run = wrong as Run;
    let bodies = 0;
    expect(await locks.withLock('order', () => ++bodies)).toBe(1);
    const thrown = locks.withLock('order', () => {
      bodies++;
      throw new Error('body');
    });
    await expect(thrown).rejects.toThrow('body');
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(bodies).toBe(2);
    expect(await locks.isLocked('order')).toBe(false);
    if (_what !== 'calls the work twice' && _what !== 'gives something else')
      expect(log.warnings.join()).toMatch(/A subscriber of 'nestjs-redis-lock:(acquire|hold)' .* run/);
  });

  it('that calls the work once is correct: nothing is logged', async () => {
    const { locks, log } = place.service();
    let runs = 0;
    run = (work) => {
      runs++;
      return work();
    };
    expect(await locks.withLock('order', async () => 'done')).toBe('done');
    expect(runs).toBe(1);
    expect(log.warnings).toEqual([]);
  });
});
