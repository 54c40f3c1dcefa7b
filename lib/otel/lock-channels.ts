import { type Channel, channel, type TracingChannel, tracingChannel } from 'node:diagnostics_channel';
import type { AcquireMessage, HoldMessage, PointMessages } from '../engine/trace/channels.js';

// By name, and of the library only types are imported: an application loads this entry before anything that it wants to see instrumented,
// and the library would bring ioredis with it.
export const acquireChannel: TracingChannel<unknown, AcquireMessage> = tracingChannel('nestjs-redis-lock:acquire');
export const holdChannel: TracingChannel<unknown, HoldMessage> = tracingChannel('nestjs-redis-lock:hold');

/** @returns a function that ends the subscription */
export function subscribePoint<Name extends keyof PointMessages>(
  name: Name,
  listener: (message: PointMessages[Name]) => void,
): () => void {
  return subscribe(channel(name) as Channel<unknown, PointMessages[Name]>, listener);
}

/** @returns a function that ends the subscription */
export function subscribe<Message>(to: Channel<unknown, Message>, listener: (message: Message) => void): () => void {
  const heard = (message: unknown) => listener(message as Message);
  to.subscribe(heard);
  return () => void to.unsubscribe(heard);
}
