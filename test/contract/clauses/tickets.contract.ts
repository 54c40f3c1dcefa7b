import { TICKET_LIFETIME } from '../../../lib/backends/lock-backend.js';
import { type ContractWorld, LAPSING } from '../support/contract-world.js';

/** The numbers of waiters that were woken and came too late. */
export function describeTickets(world: ContractWorld): void {
  const takeTicket = (client: number, key: string, holder: string) =>
    world.clients[client].backend.takeTicket?.(key, holder);

  describe('the tickets of waiters that were woken but found the lock busy', () => {
    if (world.capabilities.numbers === false) {
      it('are not given', () => {
        for (const { backend } of world.clients) expect(backend.takeTicket).toBeUndefined();
      });
      return;
    }

    it('are numbered in the order of the calls, whichever client they come from', async () => {
      const key = world.key();
      for (const ticket of [1, 2, 3, 4]) expect(await takeTicket(ticket % 2, key, 'client:1')).toBe(ticket);
    });

    it('are all different when the calls come together', async () => {
      const key = world.key();
      const tickets = await Promise.all(Array.from({ length: 30 }, (_, n) => takeTicket(n % 3, key, 'client:1')));
      expect(tickets.sort((a = 0, b = 0) => a - b)).toEqual(Array.from({ length: 30 }, (_, n) => n + 1));
    });

    it('begin again with each holder, and with each lock', async () => {
      const key = world.key('a name {with} braces');
      expect(await takeTicket(0, key, 'client:1')).toBe(1);
      expect(await takeTicket(0, key, 'client:2')).toBe(1);
      expect(await takeTicket(1, key, 'client:2')).toBe(2);
      expect(await takeTicket(1, key, 'client:1')).toBe(1);
      expect(await takeTicket(0, world.key(), 'client:1')).toBe(1);
    });

    it('are forgotten after a moment', async () => {
      const key = world.key();
      expect(await takeTicket(0, key, 'client:1')).toBe(1);
      await world.elapse(TICKET_LIFETIME + LAPSING);
      expect(await takeTicket(0, key, 'client:1')).toBe(1);
    });

    it('leave the lock as it is', async () => {
      const [ann, bob] = world.owners('reentrant', 2);
      await takeTicket(0, ann.key, 'client:1');
      expect((await ann.inspect()).owners).toEqual([]);
      await ann.take();
      await takeTicket(1, ann.key, ann.owner);
      await bob.meet();
      expect((await ann.release()).released).toBe(true);
      await bob.take();
    });
  });
}
