import { randomUUID } from 'node:crypto';
import { errorCode, lockChannel, messageOf, tagOf } from '../../backends/redis/diagnostics.js';
import type { Server, Subscriber } from '../redis/server.js';
import { type Finding, note, ok, wrong } from './check.js';

const PATIENCE = 2_000;

/**
 * Checks whether a message from one connection reaches another one, because such messages wake waiters. On a cluster,
 * the library prefers sharded messages.
 */
export async function checkPubSub(master: Server): Promise<Finding> {
  let subscriber: Subscriber | undefined;
  try {
    subscriber = await master.subscriber();
    const arrived = (await sendSharded(master, subscriber)) ?? (await send(master, subscriber));
    if (arrived) return ok('messages arrive');
    return wrong(
      `a message did not arrive within ${PATIENCE} ms, so waiters only poll`,
      'check whether a proxy between the application and Redis drops messages',
    );
  } catch (error) {
    const message = messageOf(error);
    if (errorCode(message) === 'NOPERM') return note(`not known: ${message}`, "see the 'rights' check");
    return wrong(`no messages, so waiters only poll: ${message}`, 'use a server or a proxy that supports pub/sub');
  } finally {
    subscriber?.close();
  }
}

async function send(master: Server, subscriber: Subscriber): Promise<boolean> {
  const channel = lockChannel(`doctor-${randomUUID()}`);
  await subscriber.subscribe('channel', channel);
  const arrived = subscriber.hears(PATIENCE);
  await master.ask('publish', channel, '0');
  return arrived;
}

/** @returns undefined if the server has no sharded pub/sub */
async function sendSharded(master: Server, subscriber: Subscriber): Promise<boolean | undefined> {
  if (master.slot === undefined) return undefined;
  const channel = lockChannel(`doctor-${randomUUID()}{${tagOf(master.slot)}}`);
  try {
    await subscriber.subscribe('sharded', channel);
  } catch (error) {
    if (errorCode(messageOf(error)) === 'UNKNOWN') return undefined;
    throw error;
  }
  const arrived = subscriber.hears(PATIENCE);
  await master.ask('spublish', channel, '0');
  return arrived;
}
