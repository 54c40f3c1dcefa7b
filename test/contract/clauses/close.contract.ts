import { BackendError } from '../../../lib/backends/lock-backend.js';
import type { ContractWorld } from '../support/contract-world.js';
import { Listener } from '../support/listener.js';
import { LONG } from '../support/owner.js';

/** One client is closed; the others continue. */
export function describeClose(world: ContractWorld): void {
  it('rejects calls with BackendError after it was closed', async () => {
    const client = await world.connect();
    const ann = world.owner('reentrant', world.key(), client);
    await ann.take();
    await client.backend.close();
    const calls = [
      ann.acquire(),
      client.backend.acquireAll([ann.request()]),
      ann.release(),
      ann.transferTo(world.owner('reentrant', ann.key)),
      ann.renew(),
      client.backend.refreshWaiters([world.owner(world.has('fair') ? 'fair' : 'write', ann.key, client)], LONG),
      ...(world.capabilities.joinsQuorums === false ? [] : [ann.raiseToken(1)]),
      ann.forceRelease(),
      ann.inspect(),
    ];
    for (const call of calls) await expect(call).rejects.toThrow(BackendError);
    await client.backend.close();
  });

  it('settles every call that was under way when it was closed', async () => {
    const client = await world.connect();
    const calls = Array.from({ length: 200 }, () => world.owner('reentrant', world.key(), client).acquire());
    const settled = Promise.allSettled(calls);
    await client.backend.close();
    for (const outcome of await settled) {
      if (outcome.status === 'rejected') expect(outcome.reason).toBeInstanceOf(BackendError);
    }
  });

  it('leaves its locks to their leases', async () => {
    const client = await world.connect();
    const ann = world.owner('reentrant', world.key(), client);
    await ann.take();
    await client.backend.close();
    expect(await world.owner('reentrant', ann.key).meet()).toMatchObject({ holder: ann.owner });
  });

  if (world.capabilities.publishes !== false) describeSilence(world);

  it('describes itself in one line for logs', () => {
    expect(world.clients[0].backend.description).toMatch(/^\w.+$/);
  });
}

function describeSilence(world: ContractWorld): void {
  it('receives no messages any more, while others do', async () => {
    const client = await world.connect();
    const [ann, bob] = world.owners('reentrant', 2);
    const closed = new Listener((heard) => client.backend.subscribe(ann.key, 'reentrant', client.id, heard));
    await closed.ready;
    const open = await world.listen(bob);
    await client.backend.close();
    await ann.take();
    await ann.release();
    await open.hears();
    expect(closed.heard).toEqual([]);
    closed.close();
  });
}
