import { SlotChunk } from '../../lib/standby/slots.js';
import { ServiceKeeper } from '../../lib/standby/thread-side.js';
import type { BrokenCalls } from './broken-calls.js';

/** The thread renews for as long as the event loop is blocked. */
export const renewsWithoutEnd: BrokenCalls = () => {
  interface Keeper {
    service: object;
    mayRenew(now: number): boolean;
  }
  const keeper = ServiceKeeper.prototype as unknown as Keeper;
  const { mayRenew } = keeper;
  keeper.mayRenew = function (now) {
    const { service } = this;
    this.service = { ...service, keepWhileBlocked: Number.POSITIVE_INFINITY };
    const may = mayRenew.call(this, now);
    this.service = service;
    return may;
  };
  return () => {
    keeper.mayRenew = mayRenew;
  };
};

/** The thread says that it has asked 200 ms later than it has, as if a lease began with a late answer. */
export const countsFromLateAnswer: BrokenCalls = () => {
  const { say } = SlotChunk.prototype;
  SlotChunk.prototype.say = function (slot, state, said) {
    say.call(this, slot, state, said === 'gone' ? said : said + 200);
  };
  return () => {
    SlotChunk.prototype.say = say;
  };
};
