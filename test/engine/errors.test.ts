import { LockBusyError } from '../../lib/engine/errors.js';

describe('the error about a busy lock', () => {
  it('tells the code which client holds the lock, but is serialized without it', () => {
    const client = { application: 'shop', host: 'web-1', pid: 7, method: 'Orders.place' } as never;
    const error = new LockBusyError('busy', 'order', 500, 'client:1', true, client);
    expect(error.holderClient).toBe(client);
    expect(error).toMatchObject({ lockName: 'order', remainingTime: 500, holder: 'client:1', fixedLease: true });
    expect(JSON.stringify({ ...error })).not.toContain('web-1');
    expect(Object.keys(error)).not.toContain('holderClient');
  });
});
