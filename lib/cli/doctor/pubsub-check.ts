import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { errorCode, messageOf } from '../../backends/redis/connection/redis-errors.js';
import { tagOf } from '../../backends/redis/hash-slot.js';
import { lockChannel } from '../../backends/redis/lock-keys.js';
import { type Finding, note, ok, wrong } from './check.js';

const PATIENCE = 2_000;

/**
 * Whether a message of one connection reaches another one: waiters are woken this way. In a cluster the library prefers sharded messages.
 *
 * @param slot one that a master of a cluster serves
 */
export async function checkPubSub(master: Redis, slot: number | undefined): Promise<Finding> {
  const subscriber = master.duplicate({ lazyConnect: true, enableReadyCheck: false, retryStrategy: () => null });
  subscriber.on('error', () => {});
  try {
    await subscriber.connect();
    const arrived = (await sendSharded(master, subscriber, slot)) ?? (await send(master, subscriber));
    if (arrived) return ok('messages arrive');
    return wrong(
      `a message did not arrive within ${PATIENCE} ms, so waiters only poll`,
      'look for a proxy between the application and Redis that does not forward messages',
    );
  } catch (error) {
    const message = messageOf(error);
    if (errorCode(message) === 'NOPERM') return note(`not known: ${message}`, 'see the check of rights');
    return wrong(`no messages, so waiters only poll: ${message}`, 'use a server, or a proxy, that has pub/sub');
  } finally {
    subscriber.disconnect();
  }
}

async function send(master: Redis, subscriber: Redis): Promise<boolean> {
  const channel = lockChannel(`doctor-${randomUUID()}`);
  await subscriber.subscribe(channel);
  const arrived = arrival(subscriber, 'message');
  await master.publish(channel, '0');
  return arrived;
}

/** @returns undefined where the server has no sharded pub/sub */
async function sendSharded(master: Redis, subscriber: Redis, slot: number | undefined): Promise<boolean | undefined> {
  if (slot === undefined) return undefined;
  const channel = lockChannel(`doctor-${randomUUID()}{${tagOf(slot)}}`);
  try {
    await subscriber.ssubscribe(channel);
  } catch (error) {
    if (errorCode(messageOf(error)) === 'UNKNOWN') return undefined;
    throw error;
  }
  const arrived = arrival(subscriber, 'smessage');
  await master.spublish(channel, '0');
  return arrived;
}

function arrival(subscriber: Redis, event: 'message' | 'smessage'): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), PATIENCE);
    subscriber.once(event, () => {
      clearTimeout(timer);
      resolve(true);
    });
  });
}
