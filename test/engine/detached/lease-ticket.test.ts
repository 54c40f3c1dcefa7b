import { type LeaseTicket, newSecret, readTicket, writeTicket } from '../../../lib/engine/detached/lease-ticket.js';
import { LockConfigurationError, LockError } from '../../../lib/engine/errors.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

const TICKET: LeaseTicket = { key: 'lock:order', type: 'reentrant', clientId: 'ann', secret: 'f'.repeat(32) };

const encoded = (parts: unknown) => `lock-ticket-1.${Buffer.from(JSON.stringify(parts)).toString('base64url')}`;

describe('a ticket', () => {
  it.each([
    TICKET,
    { ...TICKET, type: 'write' },
    { ...TICKET, type: 'fenced' },
    { ...TICKET, key: 'lock:{ä}:☃' },
    { ...TICKET, key: `lock:${'☃'.repeat(330)}` },
    { ...TICKET, key: `lock:${'\u0001'.repeat(1_019)}` },
    { ...TICKET, clientId: 'x'.repeat(150) },
  ] as const)('says which lock it is for, and who detached it: %j', (ticket) => {
    expect(readTicket(writeTicket(ticket), 'lock:')).toEqual(ticket);
  });

  it('begins with the version of its format', () => {
    expect(writeTicket(TICKET)).toMatch(/^lock-ticket-1\.[\w-]+$/);
  });

  it.each([
    ['of another version', writeTicket(TICKET).replace('ticket-1', 'ticket-2')],
    ['without a beginning', writeTicket(TICKET).slice('lock-ticket-1.'.length)],
    ['that is no text', 42],
    ['that was cut', writeTicket(TICKET).slice(0, 40)],
    ['that is no list', encoded({ length: 4 })],
    ['with too few parts', encoded(['lock:order', 'reentrant', 'ann'])],
    ['with too many parts', encoded(['lock:order', 'reentrant', 'ann', 'f'.repeat(32), ''])],
    ['with a part that is no text', encoded(['lock:order', 'reentrant', 7, 'f'.repeat(32)])],
    ['of an unknown type', encoded(['lock:order', 'toString', 'ann', 'f'.repeat(32)])],
    ['of a type that cannot be detached', encoded(['lock:order', 'read', 'ann', 'f'.repeat(32)])],
    ['of a client without an id', encoded(['lock:order', 'reentrant', '', 'f'.repeat(32)])],
    ['of a client whose id is too long', encoded(['lock:order', 'reentrant', 'x'.repeat(151), 'f'.repeat(32)])],
    ['with a short secret', encoded(['lock:order', 'reentrant', 'ann', 'f'.repeat(31)])],
    ['with a long secret', encoded(['lock:order', 'reentrant', 'ann', 'f'.repeat(33)])],
    ['that is longer than any ticket', `${writeTicket(TICKET)}${'='.repeat(10_000)}`],
  ])('%s is refused', (_, text) => {
    const read = () => readTicket(text, 'lock:');
    expect(read).toThrow(LockError);
    expect(read).toThrow('adopt(): this is not a ticket');
  });

  it('may have ten thousand characters', () => {
    const text = writeTicket(TICKET);
    // Node.js skips what is behind the text in base64.
    expect(readTicket(text.padEnd(10_000, '='), 'lock:')).toEqual(TICKET);
    expect(() => readTicket(text.padEnd(10_001, '='), 'lock:')).toThrow('this is not a ticket');
  });

  it('of a service with another keyPrefix is refused with both', () => {
    const read = () => readTicket(writeTicket(TICKET), 'shop:');
    expect(read).toThrow(LockConfigurationError);
    expect(read).toThrow(
      "adopt(): the ticket is for the lock 'lock:order', but the keyPrefix of this service is 'shop:'",
    );
  });

  it('has a secret of 128 bits, from two ids', () => {
    const runtime = new VirtualRuntime();
    const secrets = Array.from({ length: 3 }, () => newSecret(runtime));
    expect(new Set(secrets).size).toBe(3);
    for (const secret of secrets) expect(secret).toMatch(/^[0-9a-f]{32}$/);
    const ids = (...values: string[]) => ({ uuid: () => values.shift() as string }) as VirtualRuntime;
    const secret = newSecret(ids('one', 'two'));
    expect(newSecret(ids('one', 'three'))).not.toBe(secret);
    expect(newSecret(ids('three', 'two'))).not.toBe(secret);
    expect(newSecret(ids('one', 'two'))).toBe(secret);
  });
});
