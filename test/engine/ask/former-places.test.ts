import { FormerPlaces } from '../../../lib/engine/ask/former-places.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

describe('a place that this process has left or used up', () => {
  const open = () => {
    const runtime = new VirtualRuntime();
    return { runtime, places: new FormerPlaces(runtime, 1_000) };
  };

  it('is remembered as long as the backend may keep it, and no longer', async () => {
    const { runtime, places } = open();
    places.add('me:1');
    expect([places.has('me:1'), places.has('me:2')]).toEqual([true, false]);
    await runtime.advance(999);
    expect(places.has('me:1')).toBe(true);
    await runtime.advance(1);
    expect(places.has('me:1')).toBe(false);
  });

  it('is remembered from the last time that it ended', async () => {
    const { runtime, places } = open();
    places.add('me:1');
    await runtime.advance(600);
    places.add('me:2');
    places.add('me:1');
    await runtime.advance(600);
    expect([places.has('me:1'), places.has('me:2')]).toEqual([true, true]);
  });

  it('takes no memory after that', async () => {
    const { runtime, places } = open();
    const size = () => (places as unknown as { ends: Map<string, number> }).ends.size;
    for (let i = 0; i < 100; i++) {
      places.add(`me:${i}`);
      await runtime.advance(100);
    }
    expect(size()).toBeLessThanOrEqual(11);
  });
});
