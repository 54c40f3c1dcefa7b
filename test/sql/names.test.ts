import { LockUnavailableError } from '../../lib/engine/errors.js';
import { ALL_SQL_LOCKS } from './sql-locks.js';
import { openSqlWorld } from './sql-world.js';

describe.each(ALL_SQL_LOCKS)('similar names, %s on %s', (which, kind) => {
  const world = openSqlWorld(kind, which);

  it('are different locks: case, accents, spaces at the end, emoji, bytes', async () => {
    const [ann, bob] = [world.service({ connections: 30 }), world.service()];
    const name = world.name();
    const alike = ['a', 'A', 'a ', 'a  ', 'á', 'a\u0301', '😀', '😁', 'ß', 'ss', "'", '"', '\\', '%', 'x'.repeat(900)];
    const leases = [];
    for (const end of alike) leases.push(await ann.acquire(name + end, { waitTime: 5_000 }));
    for (const end of alike) expect(await bob.tryAcquire(name + end)).toBeNull();
    for (const lease of leases) await lease.release();
    for (const end of alike) await (await bob.acquire(name + end, { waitTime: 5_000 })).release();
  });

  it('are refused at once, with the reason, where the database has no place for them', async () => {
    const locks = world.service();
    const acquired = locks.acquire(`${world.name()}\u0000`, { waitTime: 60_000 });
    if (kind !== 'PostgreSQL') return (await acquired).release();
    await expect(acquired).rejects.toThrow(LockUnavailableError);
    await expect(acquired).rejects.toThrow(/invalid byte sequence/);
  });
});
