import { LONGEST_GRANT, SHORTEST_GRANT } from '../../../lib/backends/line-backend.js';
import type { AcquireReply, ReleaseReply } from '../../../lib/backends/lock-backend.js';
import type { Subject } from '../../chaos/simulation/simulated/link-trace.js';
import type { TokenDraw, TracedRequest } from '../../chaos/simulation/simulation-trace.js';
import { EPOCH, type Field, localTime, type OwnerId, type Step, serverTime } from './steps.js';

export type Fields = Readonly<Record<string, Field | readonly number[] | readonly OwnerId[]>>;

/** Turns the events of a simulation into the steps of a specification. */
export abstract class Projection {
  protected readonly steps: Step[] = [];
  private readonly names: readonly string[];
  private readonly rates: readonly number[];

  /** @param rateOf how fast the clock of each process runs */
  constructor(private readonly rateOf: ReadonlyMap<string, number>) {
    this.names = [...rateOf.keys()];
    this.rates = [...rateOf.values()];
  }

  protected abstract add(e: string, fields: Fields): void;

  /** The number of a process. */
  protected processNumber(process: string): number {
    return this.names.indexOf(process) + 1;
  }

  /** A moment of virtual time on a process's own clock. */
  protected local(process: string, at: number): number {
    return localTime(at, this.rateOf.get(process) as number);
  }

  /** What the clocks of all processes show at a moment of virtual time. */
  protected clocksAt(at: number): readonly number[] {
    return this.rates.map((rate) => localTime(at, rate));
  }
}

/** What may happen to a request between its process and the server. */
type OnTheWay =
  | { readonly kind: 'late' | 'request-lost'; readonly copy: number }
  | { readonly kind: 'resent'; readonly copy: number; readonly deadline: number | undefined; readonly again: boolean }
  | { readonly kind: 'failed'; readonly request: TracedRequest; readonly outcome: 'refused' | 'unknown' };

/** A projection in which owners and requests have numbers. */
export abstract class NumberedProjection extends Projection {
  protected readonly owners: string[] = [];

  /** The name of the process of an owner. */
  protected abstract processOf(owner: string): string;

  protected owner(id: string): number {
    let index = this.owners.indexOf(id);
    if (index < 0) index = this.owners.push(id) - 1;
    return index + 1;
  }

  /** The process of each owner, by the owner's number. */
  protected processesOfOwners(): readonly number[] {
    return this.owners.map((owner) => this.processNumber(this.processOf(owner)));
  }

  /** Of a copy. 0: it has none. */
  private deadline({ deadline }: Fields, ofCopy: number | undefined): number {
    return deadline === 0 || ofCopy === undefined ? 0 : serverTime(ofCopy);
  }

  protected onTheWay(event: OnTheWay, message: Fields): void {
    const { id } = message;
    switch (event.kind) {
      case 'late':
      case 'request-lost':
        return this.add(event.kind === 'late' ? 'late' : 'lose', { id, copy: event.copy });
      case 'resent':
        return this.add('resend', { ...message, copy: event.copy, deadline: this.deadline(message, event.deadline) });
      case 'failed':
        // It has not left its process.
        if (event.outcome === 'refused' && !event.request.late) this.add('lose', { id, copy: 1 });
    }
  }
}

/** A token relative to the beginning of all clocks. 0: there is none, or it is a forged one, from before that. */
export function tokenOf(token: number): number {
  return Math.max(0, token - EPOCH * 1000);
}

/** With which lease the place of a request is granted the lock, in µs. */
export function grantLeaseOf({ grantLease }: Subject & { kind: 'acquire' }): number {
  return Math.min(LONGEST_GRANT, Math.max(SHORTEST_GRANT, grantLease)) * 1000;
}

export function succeeded({ kind }: Subject, reply: unknown): boolean {
  switch (kind) {
    case 'acquire':
      return (reply as AcquireReply).acquired;
    case 'transfer':
      return reply !== undefined;
    case 'renew':
      return reply as boolean;
    case 'release':
      return (reply as ReleaseReply).released;
    default:
      return true;
  }
}

/** `n`: how many acquisitions of the same script have drawn before. */
export function drawnBy(reply: unknown, { reserve, count, first }: TokenDraw) {
  const { token, reserved } = reply as AcquireReply & { acquired: true };
  return { token: tokenOf(token), reserved, reserve, count, n: (token - first) / (1 + reserved) };
}
