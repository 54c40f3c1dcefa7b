import fc from 'fast-check';
import { LockKeyError } from '../../../lib/engine/errors.js';
import { escapedNames } from '../../../lib/engine/terms/escaped-names.js';
import { lockName } from '../../../lib/engine/terms/lock-name-tag.js';
import { compileTemplate } from '../../../lib/nest/key-template/key-template.js';
import { openVirtualWorld } from '../../support/lock-world.js';

const namesOf = compileTemplate('order:#<args[0]>:#<args[1]>', 'Orders.ship', 'ship');
const byTemplate = (...args: unknown[]) => namesOf({ instance: {}, args, method: 'ship' });

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
});

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
      expect.stringMatching(/'order:a:b:c'.*Orders\.ship, whose template makes 'order:a%3Ab:c'.*lockName`…`/),
    ]);
  });

  it('costs nothing that grows: a hundred names are remembered', () => {
    for (let n = 0; n < 200; n++) byTemplate(`x:${n}`, 'y');
    expect(escapedNames.get('order:x:10:y')).toBeDefined();
    expect(escapedNames.get('order:x:150:y')).toBeUndefined();
  });
});
