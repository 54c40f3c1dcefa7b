import type { ClientRecord } from '../../../lib/backends/lock-backend.js';
import type { SynchronizerState } from '../../../lib/backends/synchronizer-state.js';
import type { Services } from '../../../lib/engine/services.js';
import { describeObstacle } from '../../../lib/engine/synchronizers/describe-obstacle.js';
import { newPermitId } from '../../../lib/engine/synchronizers/permit-id.js';

const clientId = (n: number) => `${n}`.padStart(8, '0').concat('-0000-4000-8000-000000000000');
const ME = clientId(0);
let permits = 0;
const permitOf = (client: string) => ({ id: newPermitId(client, clientId(++permits)), remaining: 1_000 });

const recordOf = (client: string, host: string, owner?: string) =>
  ({
    clientId: client,
    application: 'shop',
    host,
    pid: 7,
    version: '',
    holds: owner === undefined ? [] : [{ owner, group: '', method: 'Mail.send' }],
  }) as unknown as ClientRecord;

describe('why the callers of a semaphore or latch wait', () => {
  const described = async (
    state: Partial<SynchronizerState> | undefined,
    clients: readonly ClientRecord[] | undefined = [],
  ) => {
    const written: string[] = [];
    const asked: string[] = [];
    const inspect = async (key: string) => {
      asked.push(key);
      return state;
    };
    const directory = clients && { clients: async () => clients };
    const services = { backend: { synchronizers: { inspect }, directory }, clientId: ME };
    await describeObstacle(services as unknown as Services, 'lock:mail', (obstacle) => written.push(obstacle));
    expect(asked).toEqual(['lock:mail']);
    expect(written).toHaveLength(1);
    return written[0];
  };

  it.each<[string, Partial<SynchronizerState> | undefined, string]>([
    ['it does not exist', undefined, 'it does not exist'],
    ['it is a latch', { type: 'count-down-latch', count: 3, acquired: 0 }, 'its count is 3'],
    ['it is a number of which nothing else is known', { type: 'counter', count: 4, acquired: 0 }, 'its count is 4'],
    [
      'its permits are only counted',
      { type: 'semaphore', count: 1, total: 5, acquired: 0 },
      '1 of 5 permits are available. Nobody knows who holds the others, because they have no leases',
    ],
    [
      'its permits are only counted, and it is not known how many there are',
      { type: 'semaphore', count: 1, total: undefined, acquired: 0 },
      '1 of its permits are available. Nobody knows who holds the others, because they have no leases',
    ],
  ])('is written if %s', async (_, state, text) => {
    expect(await described(state)).toBe(text);
  });

  it('is that nobody can say, or that the backend does not answer', async () => {
    const written: string[] = [];
    const write = (obstacle: string) => void written.push(obstacle);
    const describe = (synchronizers: unknown) =>
      describeObstacle({ backend: { synchronizers }, clientId: ME } as unknown as Services, 'lock:mail', write);
    await describe(undefined);
    await describe({});
    await describe({ inspect: () => Promise.reject(new Error('no answer')) });
    expect(written).toEqual([
      'the reason is not known',
      'the reason is not known',
      'the reason is not known, because the backend does not answer',
    ]);
  });

  const leased = (held: readonly { readonly id: string }[], total?: number) =>
    ({
      type: 'permit-expirable-semaphore',
      count: 0,
      total,
      acquired: held.length,
      permits: held,
    }) as SynchronizerState;

  it('names who holds the permits, and how many', async () => {
    const [ann, bob] = [clientId(1), clientId(2)];
    const own = [permitOf(ME), permitOf(ME)];
    const theirs = permitOf(ann);
    const state = leased([...own, theirs, permitOf(bob)], 9);
    expect(await described(state, [recordOf(ann, 'web-1', theirs.id), recordOf(ME, 'web-0')])).toBe(
      '0 of 9 permits are available; held by this process (2), shop on web-1, pid 7, in Mail.send (1), a client without a record (1)',
    );
  });

  it('counts the permits if their number is not known, and does without a directory', async () => {
    const state = { ...leased([permitOf(clientId(1)), permitOf(ME)]), count: 1 };
    expect(await described(state, undefined)).toBe(
      '1 of 3 permits are available; held by a client without a record (1), this process (1)',
    );
  });

  it('names five holders, and says if there are others', async () => {
    const others = [1, 2, 3, 4, 5, 6].map(clientId);
    const records = others.map((client, i) => recordOf(client, `web-${i + 1}`));
    const named = [1, 2, 3, 4, 5].map((n) => `shop on web-${n}, pid 7 (1)`).join(', ');
    const five = await described(leased(others.slice(0, 5).map(permitOf), 6), records);
    expect(five).toBe(`0 of 6 permits are available; held by ${named}`);
    const six = await described(leased(others.map(permitOf), 6), records);
    expect(six).toBe(`0 of 6 permits are available; held by ${named} and others`);
  });
});
