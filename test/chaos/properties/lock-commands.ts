import fc from 'fast-check';
import { HEAD_START, hasLine, isTransferable, type LockType } from '../../../lib/backends/lock-backend.js';
import { isReadWrite, type LockModel, type Part } from './lock-model.js';
import type { Client, ModelWorld } from './model-world.js';

const LONG = 600_000;
const KEYS = ['a', 'b'] as const;
const TYPES: readonly LockType[] = ['reentrant', 'fenced', 'fair', 'read', 'write'];

/** The client, the lock and the type that a command is about. Names are completed in the run. */
interface Subject {
  readonly key: (typeof KEYS)[number];
  readonly type: LockType;
  readonly client: number;
  readonly number: number;
  /**
   * Which owner the command is about instead, if there is one: the holder of the lock, a waiter, or only the owner id
   * of a holder.
   */
  readonly aim: 'anybody' | 'holder' | 'waiter' | 'owner';
}

/** One command, which is sent to the backend and to the model. */
export class LockCommand implements fc.AsyncCommand<LockModel, ModelWorld> {
  constructor(
    private readonly title: string,
    private readonly act: (world: ModelWorld) => Promise<void>,
  ) {}

  check(): boolean {
    return true;
  }

  async run(_model: LockModel, world: ModelWorld): Promise<void> {
    await this.act(world);
    await world.settled();
  }

  toString(): string {
    return this.title;
  }
}

function partOf(
  world: ModelWorld,
  { key: name, type, client, number, aim }: Subject,
): Part & { readonly from: Client } {
  const key = world.key(name);
  const { model } = world;
  const aimed = aim === 'anybody' ? [] : aim === 'waiter' ? model.waiters(key) : model.holders(key);
  const meant = aimed[(client * 2 + number) % aimed.length];
  const owner = meant?.owner ?? world.owner(client, number);
  const from = world.clients.find(({ id }) => owner.startsWith(`${id}:`)) ?? world.clients[client];
  return { key, type: meant === undefined || aim === 'owner' ? type : meant.type, owner, from };
}

/** A process neither takes a lock nor hands it on under the owner of its place. */
const waitsInLine = (model: LockModel, part: Part) => hasLine(part.type) && model.hasPlace(part);

/** The model does not know the time, so a head start is over before a command whose effect depends on it. */
const afterHeadStart = async ({ model, elapse }: ModelWorld, { key, type }: Part) => {
  if (hasLine(type) && model.hasHeadStart(key)) await elapse(HEAD_START + 1);
};

const request = ({ key, type, owner }: Part) => ({ key, type, owner });

/** Checks that the tokens of one counter grow, including reserved ones. */
function grows(world: ModelWorld, { key, type }: Part, token: number, reserved: number): void {
  const counter = type === 'fenced' ? key : '';
  expect(token).toBeGreaterThan(world.tokens.get(counter) ?? 0);
  world.tokens.set(counter, token + reserved);
}

async function acquire(world: ModelWorld, subject: Subject, waits: boolean, pastLine: boolean, reserve: number) {
  const part = partOf(world, subject);
  const { model } = world;
  // Who has a place in line asks for it.
  const waiterTimeout = waits || model.hasPlace(part) ? LONG : 0;
  const { plain, writer, readers } = model.at(part.key);
  // An owner id has only one type, so nobody waits for a lock behind itself.
  const holdsOther = isReadWrite(part.type) ? plain === part.owner : writer === part.owner || readers.has(part.owner);
  if (waiterTimeout > 0 && holdsOther) return;
  if (waiterTimeout > 0) await afterHeadStart(world, part);
  const entersLine = hasLine(part.type) && waiterTimeout > 0;
  const { obstacles, calls } = entersLine
    ? model.entered(part, pastLine)
    : { obstacles: model.obstacles(part, pastLine, waiterTimeout > 0), calls: [] };
  world.expect(calls);
  const reply = await part.from.backend.acquire({
    ...request(part),
    leaseTime: LONG,
    reserve,
    waiterTimeout,
    pastLine,
  });
  expect(reply.acquired).toBe(obstacles.length === 0);
  if (reply.acquired) {
    expect(reply.reserved).toBeLessThanOrEqual(reserve);
    grows(world, part, reply.token, reply.reserved);
    model.grant(part);
    return;
  }
  expect(obstacles).toContain(reply.holder);
  expect(reply.remaining).toBeGreaterThan(0);
  expect(reply.remaining).toBeLessThanOrEqual(LONG);
  if (waiterTimeout > 0) model.keepPlace(part);
}

async function acquireAll(world: ModelWorld, subject: Subject, types: readonly [LockType, LockType]) {
  const parts = KEYS.map((key, i) => partOf(world, { ...subject, key, type: types[i] }));
  // Fair locks, which a command aimed at a waiter may name, are never acquired together.
  const { model } = world;
  if (parts.some((part) => part.type === 'fair' || waitsInLine(model, part))) return;
  const blocked = parts.findIndex((part) => model.obstacles(part, true).length > 0);
  const requests = parts.map((part) => ({
    ...request(part),
    leaseTime: LONG,
    reserve: 0,
    waiterTimeout: 0,
    pastLine: true,
  }));
  const reply = await parts[0].from.backend.acquireAll(requests);
  expect(reply.acquired).toBe(blocked < 0);
  if (!reply.acquired) {
    expect(reply.index).toBe(blocked);
    expect(model.obstacles(parts[blocked], true)).toContain(reply.holder);
    return;
  }
  for (const [i, part] of parts.entries()) {
    grows(world, part, reply.tokens[i], 0);
    model.grant(part);
  }
}

async function release(world: ModelWorld, subject: Subject, quietly: boolean) {
  const part = partOf(world, subject);
  // An owner id has only one type, so backends need not check whether they release a reader.
  if (!isReadWrite(part.type) && world.model.at(part.key).everRead.has(part.owner)) return;
  const has = world.model.has(part);
  if (has && quietly) world.model.lapse(part);
  const calls = has && !quietly ? world.model.release(part) : [];
  const listeners = world.expect(calls, part.from);
  const reply = await part.from.backend.release({ ...request(part), quietly });
  const at = has ? {} : { at: expect.any(Number) };
  expect(reply).toEqual({ released: has, listeners, published: expect.any(Boolean), resent: false, ...at });
  if (listeners > 0) expect(reply.published).toBe(true);
  if (!has || quietly) expect(reply.published).toBe(false);
}

async function transfer(world: ModelWorld, subject: Subject, heir: number, reserve: number) {
  const part = partOf(world, subject);
  const { key, type, owner: from } = part;
  const to = `${part.from.id}:${heir}`;
  if (!isTransferable(type) || waitsInLine(world.model, { key, type, owner: to })) return;
  const { transferred, calls } = world.model.transfer(part, to);
  world.expect(calls);
  const reply = await part.from.backend.transfer({ key, type, from, to, leaseTime: LONG, reserve });
  expect(reply !== undefined).toBe(transferred);
  if (reply !== undefined) grows(world, part, reply.token, reply.reserved);
}

async function renew(world: ModelWorld, subject: Subject) {
  const part = partOf(world, subject);
  expect(await part.from.backend.renew({ ...request(part), leaseTime: LONG })).toBe(world.model.has(part));
}

/** Lets the lease end without a renewal. A writer that also reads keeps the write lock for as long as its read lock. */
async function lapse(world: ModelWorld, subject: Subject) {
  const part = partOf(world, subject);
  const { model } = world;
  const reads = part.type === 'write' && model.has({ ...part, type: 'read' });
  world.expect(model.shortened(part));
  expect(await part.from.backend.renew({ ...request(part), leaseTime: 1 })).toBe(model.has(part));
  await world.elapse(2);
  if (model.has(part) && !reads) model.lapse(part);
}

async function raiseToken(world: ModelWorld, subject: Subject, by: number) {
  const part = partOf(world, subject);
  const counter = part.type === 'fenced' ? part.key : '';
  const token = (world.tokens.get(counter) ?? 0) + by;
  await part.from.backend.raiseToken(part.key, part.type, token);
  world.tokens.set(counter, token);
}

async function refresh(world: ModelWorld, subject: Subject) {
  const part = partOf(world, subject);
  const hasPlace = world.model.hasPlace(part);
  await afterHeadStart(world, part);
  world.expect(world.model.refreshed(part));
  expect(await part.from.backend.refreshWaiters([request(part)], LONG)).toEqual([hasPlace]);
}

/** The waiter dies, and loses its place. */
async function dieWaiting(world: ModelWorld, subject: Subject) {
  const part = partOf(world, subject);
  const hasPlace = world.model.hasPlace(part);
  await afterHeadStart(world, part);
  world.expect(world.model.refreshed(part));
  expect(await part.from.backend.refreshWaiters([request(part)], 1)).toEqual([hasPlace]);
  await world.elapse(2);
  world.model.forgetPlace(part);
}

async function removeWaiter(world: ModelWorld, subject: Subject) {
  const part = partOf(world, subject);
  // An owner id has only one type, so backends need not check whether a reader or writer holds another lock.
  if (isReadWrite(part.type) && world.model.at(part.key).plain === part.owner) return;
  await afterHeadStart(world, part);
  world.expect(world.model.removeWaiter(part));
  await part.from.backend.removeWaiter(request(part));
}

async function forceRelease(world: ModelWorld, { client, key: name }: Subject) {
  const key = world.key(name);
  const isFree = world.model.mode(key) === 'free';
  if (!isFree) world.expect(world.model.forceRelease(key));
  expect((await world.clients[client].backend.forceRelease(key)).length > 0).toBe(!isFree);
}

async function inspect(world: ModelWorld, { client, key: name }: Subject) {
  const key = world.key(name);
  const { mode, owners, queue } = await world.clients[client].backend.inspect(key);
  const { model } = world;
  const seen = { mode, owners: owners.map(({ owner }) => owner).sort(), queue };
  expect(seen).toEqual({
    mode: model.mode(key),
    owners: model.owners(key),
    queue: [...model.at(key).queue, ...model.at(key).line],
  });
}

const subject: fc.Arbitrary<Subject> = fc.record({
  key: fc.constantFrom(...KEYS),
  type: fc.constantFrom(...TYPES),
  client: fc.nat(2),
  number: fc.integer({ min: 1, max: 2 }),
  aim: fc.constantFrom('anybody', 'anybody', 'holder', 'holder', 'waiter', 'owner'),
});

const show = ({ key, type, client, number, aim }: Subject) => `${type} ${key} ${client}:${number} ${aim}`;

function command<Details extends unknown[]>(
  name: string,
  act: (world: ModelWorld, subject: Subject, ...details: Details) => Promise<void>,
  ...details: { [I in keyof Details]: fc.Arbitrary<Details[I]> }
): fc.Arbitrary<LockCommand> {
  return fc.tuple(subject, fc.tuple(...(details as fc.Arbitrary<unknown>[]))).map(([whose, drawn]) => {
    const title = `${name}(${[show(whose), ...drawn.map(String)].join(', ')})`;
    return new LockCommand(title, (world) => act(world, whose, ...(drawn as Details)));
  });
}

const reserve = fc.constantFrom(0, 3);
const togetherType = fc.constantFrom<LockType>(...TYPES.filter((type) => type !== 'fair'));

/** The commands that may be sent to any backend, in any order. Acquisitions are more frequent. */
export const lockCommands: fc.Arbitrary<LockCommand>[] = [
  command('acquire', acquire, fc.boolean(), fc.boolean(), reserve),
  command('acquire', acquire, fc.constant(true), fc.boolean(), reserve),
  command('acquireAll', acquireAll, fc.tuple(togetherType, togetherType)),
  command('release', release, fc.constant(false)),
  command('release', release, fc.boolean()),
  command('transfer', transfer, fc.integer({ min: 1, max: 2 }), reserve),
  command('renew', renew),
  command('lapse', lapse),
  command('raiseToken', raiseToken, fc.integer({ min: 1, max: 1_000 })),
  command('refreshPlace', refresh),
  command('dieWaiting', dieWaiting),
  command('removeWaiter', removeWaiter),
  command('forceRelease', forceRelease),
  command('inspect', inspect),
];

/** Which clients listen to which channels from the start. */
export const listenings = fc.uniqueArray(
  fc.record({
    client: fc.nat(2),
    name: fc.constantFrom(...KEYS),
    channel: fc.constantFrom('plain', 'readWrite', 'fair', 'line'),
  }),
  { maxLength: 5, selector: (listening) => JSON.stringify(listening) },
);
