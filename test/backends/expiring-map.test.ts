import { ExpiringMap } from '../../lib/backends/expiring-map.js';

const isPast = (deadline: number, now: number): boolean => deadline <= now;

describe('ExpiringMap', () => {
  it('stays within a small multiple of its live entries', () => {
    const map = new ExpiringMap<number>(isPast);
    let most = 0;
    for (let now = 0; now < 20_000; now++) {
      map.set(`${now}`, now + 100, now);
      most = Math.max(most, map.size);
    }
    expect(most).toBeLessThan(400);
  });

  it('removes no live entry', () => {
    const map = new ExpiringMap<number>(isPast);
    for (let now = 0; now < 10_000; now++) map.set(`${now}`, now % 2 === 0 ? 50_000 : now + 1, now);
    expect(map.alive(20_000)).toHaveLength(5_000);
    expect(map.size).toBeLessThan(10_000);
  });
});
