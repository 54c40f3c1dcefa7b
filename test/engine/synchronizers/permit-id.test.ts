import { isPermitOf, newPermitId, PermitHolders } from '../../../lib/engine/synchronizers/permit-id.js';

const CLIENT = '01234567-89ab-4cde-8f01-23456789abcd';
const UUID = 'fedcba98-7654-4321-8fed-cba987654321';

describe('the id of a permit', () => {
  it('begins with the digits of its client, and ends with random ones', () => {
    expect(newPermitId(CLIENT, UUID)).toBe('0123456789ab43218fedcba987654321');
  });

  it('is random if the id of the client is no UUID', () => {
    expect(newPermitId('worker-1', UUID)).toBe('fedcba98765443218fedcba987654321');
  });

  it('tells whether a client holds the permit', () => {
    const id = newPermitId(CLIENT, UUID);
    expect(isPermitOf(CLIENT, id)).toBe(true);
    expect(isPermitOf(UUID, id)).toBe(false);
    expect(isPermitOf('worker-1', newPermitId('worker-1', UUID))).toBe(false);
  });
});

describe('the client that holds a permit', () => {
  const [ann, bob] = [
    { clientId: CLIENT, name: 'ann' },
    { clientId: UUID, name: 'bob' },
  ];

  it('is found by the beginning of the id', () => {
    const holders = new PermitHolders<typeof ann>();
    for (const client of [ann, bob]) holders.add(client);
    expect(holders.of(newPermitId(CLIENT, UUID))).toBe(ann);
    expect(holders.of(newPermitId(UUID, CLIENT))).toBe(bob);
  });

  it('is not found if it is unknown, or if its id is no UUID', () => {
    const holders = new PermitHolders<typeof ann>();
    holders.add({ clientId: 'worker-1', name: 'cem' });
    holders.add(bob);
    expect(holders.of(newPermitId(CLIENT, UUID))).toBeUndefined();
    expect(holders.of('worker-1')).toBeUndefined();
  });

  it.each(['worker-1', `x${CLIENT}`, CLIENT.toUpperCase(), CLIENT.replace('-', '')])(
    'does not show in the id if it is %s',
    (clientId) => {
      expect(newPermitId(clientId, UUID)).toBe('fedcba98765443218fedcba987654321');
    },
  );
});
