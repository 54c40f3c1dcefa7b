import fc from 'fast-check';
import type { ScriptName } from '../../../../lib/backends/redis/scripts.js';

/** A call of a script. */
export interface Call {
  readonly script: ScriptName;
  readonly keys: readonly string[];
  readonly args: readonly string[];
}

/** A command that writes a key, as a script before it, another client or an eviction may have left it. */
export interface Write {
  readonly command: readonly string[];
}

export type Step = Call | Write;

/** The time of both servers, in µs. */
export const TIME = 1_795_928_629_182_385;
/** Of both servers. */
export const ADDRESS = '0x7efc69a293e0';
const NOW = Math.floor(TIME / 1_000);
/** The lives of keys, in ms, are multiples of this. Both servers round them: see `TwinServers`. */
export const ROUNDED_TO = 5_000;
const LEASE = 4 * ROUNDED_TO;
const LEASES = [LEASE, 3 * LEASE, 50 * LEASE, 1_000 * LEASE];

const CLOCK = 'nestjs_redis_lock_clock';
const OURS = '11111111-2222-811e-8444-555555555555';
const CLIENTS = ['c', 'd', OURS, `${OURS.slice(0, 14)}4111${OURS.slice(18)}`];
/** The channels to which somebody listens. The lock `b` has waiters outside its line. */
export const HEARD = [
  `nestjs_redis_lock_turn:{a}:c`,
  `nestjs_redis_lock_turn:{a}:${OURS}`,
  `nestjs_redis_lock_turn:{b}:d`,
  'redisson_lock__channel:{b}',
];

type Text = fc.Arbitrary<string>;
/** Some of the arguments of a call, or keys. */
type Texts = fc.Arbitrary<readonly string[]>;

const one = (...texts: readonly (string | number)[]): Text => fc.constantFrom(...texts.map(String));
const all = (...texts: readonly Text[]): Texts => fc.tuple(...texts);
const joined = (...texts: readonly Texts[]): Texts => fc.tuple(...texts).map((parts) => parts.flat());
/** What a caller never sends. As a time, none of it makes a key that lives for less than the scene on Redis alone. */
const nonsense = one('', 'x', '-1', `${LEASE}.5`, '2e4', '99999999999999999999', 'é');
const rarely = (usual: Text): Text => fc.oneof({ weight: 60, arbitrary: usual }, { weight: 1, arbitrary: nonsense });

const lock = one('a', 'a', 'a', 'a', 'b', 'b{x}');
/** Mostly the same one, so that calls concern what earlier ones did. */
const owner: Text = fc.oneof(
  { weight: 2, arbitrary: fc.constant('c:1') },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.constantFrom(...CLIENTS), fc.constantFrom('1', '2', '01', '12'))
      .map(([client, number]) => `${client}:${number}`),
  },
);
const lease = rarely(one(...LEASES));
const deadline = rarely(one(NOW + 1, '9007199254740', '9007199254740', '9007199254740', NOW - 1));
/** The time limit of a standby's renewals. Others have none. */
const limit = one('', '', '9007199254740', NOW - 1);
const highest = rarely(one(0, 0, 0, TIME, TIME + 5, '4000000000000005'));
const reserve = rarely(one(0, 0, 1, 7));
const publish = fc.constant('PUBLISH');
const publishOrNot = one('PUBLISH', 'PUBLISH', 'PUBLISH', 'PUBLISH', '');
const small = rarely(one(0, 1, 1, 2, 3, 5));
const number = rarely(one(1, 1, 2, 3));
const nonce = one('', 'n-1', 'n-2');
const flag = one('', '1');
const time = one(0, 1, TIME - 5, TIME, TIME + 5, NOW, NOW + LEASE);
const sequence = one(1, 2, 3);
const id = one('1'.repeat(32), '2'.repeat(32), '3'.repeat(32));
const word = one('one', 'two', 'three');
const value = one('', '1', 'value', 'wörter', '\u0000\n');
const clock = one(CLOCK, CLOCK, CLOCK, `${CLOCK}:{1}`);
const fixed = (text: string | number): Text => fc.constant(String(text));

const tag = (name: string) => (name.includes('{') ? name.slice(name.indexOf('{')) : `{${name}}`);
const tokens = (name: string) => `redisson_lock_token:${tag(name)}`;
const fair = (name: string) => [name, `queue:${tag(name)}`, `timeouts:${tag(name)}`, `heartbeats:${tag(name)}`];
const flight = (name: string) => [name, `result:${tag(name)}`, `wanted:${tag(name)}`, `forgotten:${tag(name)}`];
const readLease = (name: string, reader: string) => `${tag(name)}:${reader}:rwlock_timeout:1`;
const semaphore = ['sem', 'held', 'note', 'latest'];

/** A call for one to three owners: keys and arguments in front, and then those of each owner. */
function batch(
  keys: Texts,
  args: Texts,
  keysOf: (lock: string, owner: string) => readonly string[],
  argsOf: (owner: string) => readonly string[] = (name) => [name],
) {
  return fc
    .tuple(keys, args, fc.array(fc.tuple(lock, owner), { minLength: 1, maxLength: 3 }))
    .map(([firstKeys, firstArgs, items]) => ({
      keys: [...firstKeys, ...items.flatMap(([name, holder]) => keysOf(name, holder))],
      args: [...firstArgs, ...items.flatMap(([, holder]) => argsOf(holder))],
    }));
}

const renewal = fc.oneof(all(publish, lease), all(one('9007199254740', '9007199254740', NOW - 1), publish, lease));
const none = all();
const acquisition = all(deadline, highest, lease, reserve);
const entry = all(deadline, highest, lease, reserve, owner, lease, publish);
const onLock = (keysOf: (name: string) => readonly string[]): Texts => lock.map(keysOf);
const parts = (keys: Texts, args: Texts) =>
  fc.tuple(keys, args).map(([ofCall, given]) => ({ keys: ofCall, args: given }));
const list = (text: Text, minLength = 0): Texts => fc.array(text, { minLength, maxLength: 3 });
const pairs = (first: Text, second: Text): Texts =>
  fc.array(fc.tuple(first, second), { maxLength: 3 }).map((found) => found.flat());
const acquireAllItem = fc
  .tuple(one('reentrant', 'fenced', 'read', 'write'), lock, owner)
  .map(([type, name, holder]) => ({
    keys: [name, tokens(name), readLease(name, holder)],
    args: [type, holder, '1'],
  }));

type Parts = fc.Arbitrary<{ keys: readonly string[]; args: readonly string[] }>;

const CALLS: Readonly<Record<ScriptName, Parts>> = {
  'acquire-all': fc
    .tuple(deadline, highest, lease, fc.array(acquireAllItem, { minLength: 1, maxLength: 3 }))
    .map(([late, seen, time, items]) => ({
      keys: [CLOCK, ...items.flatMap(({ keys }) => keys)],
      args: [late, seen, time, ...items.flatMap(({ args }) => args)],
    })),
  'acquire-all-reentrant': fc
    .array(fc.array(fc.tuple(lock, owner), { minLength: 1, maxLength: 2 }), { minLength: 1, maxLength: 2 })
    .chain((groups) =>
      fc.tuple(deadline, highest, lease).map((first) => ({
        keys: [CLOCK, ...groups.flat().map(([name]) => name)],
        args: [
          ...first,
          String(groups.length),
          ...groups.map(({ length }) => String(length)),
          ...groups.flat().map(([, holder]) => holder),
        ],
      })),
    ),
  'acquire-fair': batch(all(clock), joined(acquisition, all(one(0, LEASE))), fair),
  'acquire-fenced': batch(all(clock), acquisition, (name) => [name, tokens(name)]),
  'acquire-flight-5': parts(
    onLock((name) => [CLOCK, ...flight(name)]),
    all(deadline, highest, lease, owner, one('', TIME - 5, TIME, TIME + 5), one(0, LEASE), one(0, 3, 1_000_000), small),
  ),
  'acquire-permits': batch(all(clock), joined(acquisition, all(number)), (name) => [name]),
  'acquire-read': batch(all(clock), joined(acquisition, all(one(0, 1))), (name, holder) => [
    name,
    readLease(name, holder),
  ]),
  'acquire-reentrant': batch(all(clock), acquisition, (name) => [name]),
  'acquire-write': batch(all(clock), acquisition, (name, holder) => [name, readLease(name, holder)]),
  'add-permits-3': parts(fc.constant(['sem', 'note', 'latest']), all(publish, sequence, lease, small, flag, flag)),
  'adopt-2': parts(
    onLock((name) => [name, CLOCK]),
    all(deadline, highest, lease, one(...CLIENTS), one('secret'), owner, one('', ':write'), publish),
  ),
  'count-down-3': parts(fc.constant(['latch', 'note', 'latest']), all(publish, sequence, lease, small)),
  'count-permits-2': parts(fc.constant(['sem', 'held']), all(publish)),
  'delete-latch-3': parts(fc.constant(['latch', 'note', 'latest']), all(publish, sequence, lease)),
  'drain-permits-2': parts(fc.constant(['sem', 'latest']), all(deadline, sequence, lease, flag)),
  'enter-line': parts(
    fc
      .tuple(clock, lock, fc.boolean())
      .map(([source, name, isFenced]) => [source, name, ...(isFenced ? [tokens(name)] : [])]),
    joined(entry, all(nonce, lease), fc.oneof(none, none, all(one(0, 1, 3), one('', TIME, TIME - 9)))),
  ),
  'enter-permits-line': parts(fc.tuple(clock, lock), joined(entry, all(nonce, lease, number))),
  'enter-read-write-line-3': fc
    .tuple(lock, owner, entry, one(0, 1), one(0, 1))
    .map(([name, holder, first, reads, past]) => ({
      keys: [CLOCK, name, readLease(name, holder)],
      args: [...first.slice(0, 4), holder, ...first.slice(5), reads, past],
    })),
  'find-holders-1': parts(
    onLock((name) => [name]),
    none,
  ),
  'force-release-5': parts(
    onLock((name) => [...fair(name), tokens(name)]),
    joined(all(publish, flag, one('', '', 5)), list(owner)),
  ),
  'forget-result-4': parts(
    onLock((name) =>
      flight(name)
        .map((key, i) => (i === 2 ? undefined : key))
        .filter((key) => key !== undefined),
    ).map((keys) => [CLOCK, ...keys]),
    all(highest),
  ),
  'get-count-1': parts(fc.constant(['latch']), none),
  'give-leased-permits-3': parts(
    fc.constant(['sem', 'held', 'latest']),
    joined(all(publish, sequence, lease), list(id, 1)),
  ),
  'index-client-1': parts(fc.constant(['clients']), all(word, lease)),
  'inspect-5': parts(
    onLock((name) => [...fair(name), tokens(name)]),
    none,
  ),
  'inspect-count-3': parts(fc.constant(['sem', 'held', 'note']), all(one(1, 10), one(0, 4))),
  'inspect-result-2': parts(
    onLock((name) => [CLOCK, `result:${tag(name)}`]),
    none,
  ),
  'knows-command-1': parts(fc.constant(['key']), all(one('publish', 'spublish'))),
  'list-clients-1': parts(fc.constant(['clients']), none),
  'may-join-2': parts(
    onLock((name) => [name, `forgotten:${tag(name)}`]),
    all(owner, time),
  ),
  'raise-token-1': parts(all(clock), all(one('4000000000000005', TIME, 5))),
  'note-block-1': parts(fc.constant(['record']), all(small, lease)),
  'read-client-1': parts(fc.constant(['record']), joined(all(one(0, 5, 100)), list(word, 1))),
  'read-waits-1': parts(fc.constant(['waits']), none),
  'refresh-fair-waiters-4': parts(onLock(fair), joined(all(publish, lease), list(owner, 1))),
  'refresh-places-1': parts(
    onLock((name) => [name]),
    joined(all(publish, clock, lease), pairs(owner, nonce)),
  ),
  'release-fair': batch(none, all(publishOrNot), fair),
  'release-flight-5': parts(
    onLock((name) => [CLOCK, ...flight(name)]),
    all(deadline, publish, highest, owner, time, one(0, LEASE, 3 * LEASE), value),
  ),
  'release-permits': batch(none, all(publishOrNot, clock), (name) => [name]),
  'release-read': batch(none, all(publishOrNot, clock), (name, holder) => [name, readLease(name, holder)]),
  'release-reentrant': batch(none, all(publishOrNot, clock), (name) => [name]),
  'release-write': batch(none, all(publishOrNot, clock), (name, holder) => [name, readLease(name, holder)]),
  'remove-fair-waiter-4': parts(onLock(fair), all(publish, owner)),
  'remove-place-1': parts(
    onLock((name) => [name]),
    all(publish, clock, owner),
  ),
  'renew-fair': batch(none, renewal, fair),
  'renew-flight': batch(none, renewal, (name) => [name, `forgotten:${tag(name)}`]),
  'renew-permits': batch(none, renewal, (name) => [name]),
  'renew-permits-1': parts(fc.constant(['held']), joined(all(limit, lease), list(id, 1))),
  'renew-read': batch(none, renewal, (name, holder) => [name, readLease(name, holder)]),
  'renew-reentrant': batch(none, renewal, (name) => [name]),
  'renew-write': batch(none, renewal, (name, holder) => [name, readLease(name, holder)]),
  'set-permits-4': parts(fc.constant(semaphore), all(publish, sequence, lease, small)),
  'take-leased-permits-4': fc
    .tuple(
      joined(all(deadline, sequence, lease, flag, publish, lease, one('', 3))),
      fc.array(number, { minLength: 1, maxLength: 2 }),
      list(id, 1),
    )
    .map(([first, groups, ids]) => ({ keys: semaphore, args: [...first, String(groups.length), ...groups, ...ids] })),
  'take-permits-3': parts(
    fc.constant(['sem', 'note', 'latest']),
    joined(all(deadline, sequence, lease, flag, publish, one('', 3)), list(number, 1)),
  ),
  'time-1': parts(fc.constant(['key']), none),
  'transfer-permits-2': parts(
    onLock((name) => [CLOCK, name]),
    joined(acquisition, all(owner, owner, publish)),
  ),
  'transfer-reentrant-2': parts(
    onLock((name) => [CLOCK, name]),
    joined(acquisition, all(owner, owner, publish)),
  ),
  'transfer-write-4': fc.tuple(lock, owner, owner, acquisition, publish).map(([name, from, to, first, command]) => ({
    keys: [CLOCK, name, readLease(name, from), readLease(name, to)],
    args: [...first, from, to, command],
  })),
  'try-set-count-3': parts(
    fc.constant(['latch', 'note', 'latest']),
    all(publishOrNot, sequence, lease, small, fixed('channel'), fixed('message'), fixed('count-down-latch')),
  ),
  'write-client-1': parts(fc.constant(['record']), joined(all(lease), pairs(word, value))),
  'write-waits-1': fc.tuple(deadline, lease, list(word), pairs(word, value)).map(([late, keep, ended, continuing]) => ({
    keys: ['waits'],
    args: [late, keep, String(ended.length), ...ended, ...continuing],
  })),
};

/** Most scripts are about locks. */
const ABOUT_LOCKS = /^(?:acquire|enter|release|renew|refresh|remove|transfer|adopt|force)/;
const calls: fc.Arbitrary<Call> = fc.oneof(
  ...Object.entries(CALLS).map(([script, arbitrary]) => ({
    weight: ABOUT_LOCKS.test(script) ? 3 : 2,
    arbitrary: arbitrary.map(({ keys, args }) => ({ script: script as ScriptName, keys, args })),
  })),
);

const key = fc.oneof(
  lock,
  lock.map((name) => `nestjs_redis_lock_turns:${tag(name)}`),
  lock.map((name) => `nestjs_redis_lock_turns_until:${tag(name)}`),
  lock.map((name) => `nestjs_redis_lock_turns_terms:${tag(name)}`),
  lock.map((name) => `nestjs_redis_lock_turns_newest:${tag(name)}`),
  fc.tuple(lock, one(0, 1, 2, 3)).map(([name, n]) => fair(name)[Number(n)] as string),
  fc.tuple(lock, one(1, 2, 3)).map(([name, n]) => flight(name)[Number(n)] as string),
  fc.tuple(lock, owner).map(([name, holder]) => readLease(name, holder)),
  one(...semaphore, 'latch', 'waits', 'record', 'clients', CLOCK),
);
/** When something ends. A key that ended in a few ms would end on Redis alone. */
const age = one(NOW - 1, NOW, NOW + LEASE / 4, NOW + 3 * LEASE, NOW + LEASE + 3 / 2_048);
const terms = fc.oneof(
  one('t read', 't write', '', 'x', `g ${OURS}`),
  fc
    .tuple(one('r', 'f', 'p', 'x'), one(0, 1), lease, lease, small, reserve, highest, time, nonce)
    .map((fields) => `l ${fields.slice(0, 8).join(' ')} ${ADDRESS} ${fields[8] || '-'}`),
);
const field = fc.oneof(
  owner,
  owner,
  owner.map((holder) => `${holder}:write`),
  one('mode', 'value', 'owner', 'order', 'ended', 'kept'),
);
/** Short, because the fields of a hash with a long one are in any order. */
const content = fc.oneof(one(1, 2, 'read', 'write', 'x', 't read'), time);
const writes: fc.Arbitrary<Write> = fc
  .oneof(
    fc.tuple(fixed('SET'), key, fc.oneof(content, value, owner)),
    fc.tuple(fixed('HSET'), key, field, content),
    fc.tuple(fixed('HSET'), key, fixed('mode'), one('read', 'write')),
    fc.tuple(fixed('ZADD'), key, age, fc.oneof(owner, id, one('outside', 'told'))),
    fc.tuple(fixed('ZADD'), lock, age, owner),
    fc.tuple(fixed('PEXPIRE'), fc.oneof(lock, one(...semaphore, 'latch')), one(...LEASES)),
    fc.tuple(fixed('RPUSH'), key, owner),
    fc.tuple(fixed('PEXPIRE'), key, one(...LEASES)),
    fc.tuple(fixed('SET'), one('sem', 'latch'), small),
    fc.tuple(fixed('DEL'), key),
  )
  .map((command) => ({ command }));

/** A place in the line of a lock, in all its three keys, or in two of them. */
const places: fc.Arbitrary<readonly Step[]> = fc
  .tuple(lock, owner, age, terms, one(0, 1, 2, 9, 9, 9, 9, 9))
  .map(([name, holder, lapse, wants, missing]) =>
    [
      ['ZADD', `nestjs_redis_lock_turns:${tag(name)}`, String(TIME - holder.length), holder],
      ['ZADD', `nestjs_redis_lock_turns_until:${tag(name)}`, lapse, holder],
      ['HSET', `nestjs_redis_lock_turns_terms:${tag(name)}`, holder, wants],
    ]
      .filter((_, i) => String(i) !== missing)
      .map((command) => ({ command })),
  );

/** What happens to the servers, in order. */
export const scenes: fc.Arbitrary<readonly Step[]> = fc
  .array(
    fc.oneof(
      { weight: 6, arbitrary: calls.map((step): readonly Step[] => [step]) },
      { weight: 2, arbitrary: places },
      { weight: 1, arbitrary: writes.map((step): readonly Step[] => [step]) },
    ),
    { minLength: 1, maxLength: 25, size: 'max' },
  )
  .map((steps) => steps.flat());
