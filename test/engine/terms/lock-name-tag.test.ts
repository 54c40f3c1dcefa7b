import fc from 'fast-check';
import { LockKeyError } from '../../../lib/engine/errors.js';
import { escapedNames } from '../../../lib/engine/terms/escaped-names.js';
import { lockName } from '../../../lib/engine/terms/lock-name-tag.js';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import { compileTemplate } from '../../../lib/nest/key-template/key-template.js';
import { attachLockService } from '../../../lib/nest/lock-service-property.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { openVirtualWorld } from '../../support/lock-world.js';

const namesOf = compileTemplate('order:#<args[0]>:#<args[1]>', 'Orders.ship', 'ship');
const byTemplate = (...args: unknown[]) => namesOf({ instance: {}, args, method: 'ship' });

describe('a process that locks a thing under two names', () => {
  const world = openVirtualWorld();

  it('is warned once, with both places and the remedy, and of nothing else', async () => {
    const { locks, logger } = await world.process();
    byTemplate('a:b', 'c');
    await locks.withLock('order:other:c', async () => {});
    expect(logger.warnings).toEqual([]);
    for (let n = 0; n < 2; n++) await locks.withLock('order:a:b:c', async () => {});
    await locks.withLock(lockName`order:${'a:b'}:${'c'}`, async () => {});
    expect(logger.warnings).toEqual([
      expect.stringMatching(/'order:a:b:c'.*the template of Orders\.ship, which makes 'order:a%3Ab:c'.*lockName`…`/),
    ]);
  });

  it.each<[string, (locks: LockService, name: string) => Promise<unknown>]>([
    ['tryAcquire()', async (locks, name) => (await locks.tryAcquire(name))?.release()],
    ['singleFlight()', (locks, name) => locks.singleFlight(name, async () => 1)],
    ['forgetResult()', (locks, name) => locks.forgetResult(name)],
    ['lock()', async (locks, name) => (await locks.getLock(name).lock()).release()],
  ])('is warned by %s', async (what, call) => {
    const { locks, logger } = await world.process();
    lockName`${what}:${'a:b'}`;
    await call(locks, `${what}:a:b`);
    expect(logger.warnings).toEqual([
      expect.stringMatching(/:a:b'.* and lockName`\$\{…\}:\$\{…\}`, which makes '.*%3A/),
    ]);
  });

  it('is warned of a key function', async () => {
    const { locks, logger } = await world.process();
    class Refunds {
      @DistributedLock((id: string) => `refund:${id}`)
      async refund(_id: string) {}
    }
    const refunds = attachLockService(new Refunds(), locks);
    lockName`refund:${'a:b'}`;
    await refunds.refund('a:b');
    expect(logger.warnings).toEqual([expect.stringMatching(/^Refunds\.refund of 'refund:a:b'.*lockName`refund:/)]);
  });

  it('is not warned of a name that a template or lockName has made, although it looks like a plain one', async () => {
    const { locks, logger } = await world.process();
    const made = [byTemplate('made:1', 'c'), byTemplate('made%3A1', 'c'), byTemplate('made:2', 'x')];
    expect(made[0]).toBe('order:made%3A1:c'); // what the second one would be in a plain string
    for (const name of made) await locks.withLock(name as string, async () => {});
    await locks.withLock(lockName`order:made:${'2'}:x`, async () => {});
    await locks.withLock(lockName`order:${'made'}:${'2'}:x`, async () => {});
    expect(logger.warnings).toEqual([]);
  });

  it('costs nothing that grows: a hundred names are remembered', () => {
    for (let n = 0; n < 200; n++) byTemplate(`x:${n}`, 'y');
    expect(escapedNames.get('order:x:10:y')).toBeDefined();
    expect(escapedNames.get('order:x:150:y')).toBeUndefined();
  });
});

describe('lockName', () => {
  it('makes the name that a template makes of the same values', () => {
    const part = fc.oneof(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }), fc.integer(), fc.boolean());
    fc.assert(
      fc.property(part, part, (one, other) => {
        expect(lockName`order:${one}:${other}`).toBe(byTemplate(one, other));
      }),
      { numRuns: 1_000 },
    );
  });

  it('keeps two parts from looking like others', () => {
    expect(lockName`order:${'a:b'}:${'c'}`).not.toBe(lockName`order:${'a'}:${'b:c'}`);
    expect(lockName`order:${'{x}'}`).toBe('order:%7Bx%7D');
  });

  it.each([undefined, null, Number.NaN, '', {}, Symbol('id')])('refuses the part %p', (part) => {
    expect(() => lockName`order:${part as string}`).toThrow(LockKeyError);
    expect(() => lockName`order:${part as string}`).toThrow(/^lockName of 'order:\$\{…\}': part 1 is /);
  });

  it('refuses a text with an invalid escape', () => {
    expect(() => lockName`\u:${1}`).toThrow(/the text before part 1 has an invalid escape/);
  });

  it.each([['order:1'], [['order:', '']], [undefined]])('says that it is a tag when it is called with %p', (text) => {
    const call = () => lockName(text as never, 1);
    expect(call).toThrow(LockKeyError);
    expect(call).toThrow(/^lockName is a tag .* Write lockName`order:\$\{id\}`, without parentheses$/);
  });

  it('refuses a placeholder of decorators, which nobody would fill in', () => {
    const call = () => lockName`order:#<args[0]>:${1}`;
    expect(call).toThrow(LockKeyError);
    expect(call).toThrow(/'#<' is filled in only in the key of a decorator: write \$\{…\}/);
  });
});
