import type { SlotChunk } from './slots.js';

/**
 * What the loop and its thread tell each other, apart from the slots. It changes when their common memory changes, so that no
 * thread of another version is used.
 */
export const LAYOUT = 1;

/** Servers, as options that can be cloned: `connection`, or the nodes of a quorum. */
export interface ClonedServers {
  readonly connections: readonly unknown[];
  readonly isQuorum: boolean;
}

/** A service whose leases the thread keeps. */
export interface KeptService {
  readonly id: number;
  readonly servers: ClonedServers;
  readonly clientId: string;
  /** `process.hrtime.bigint()` when the monotonic clock of the loop was 0. It is the same in all threads. */
  readonly clockStart: bigint;
  readonly header: Int32Array<SharedArrayBuffer>;
  readonly chunks: readonly ClonedChunk[];
  /** The lease of what is renewed, in milliseconds. */
  readonly leaseTime: number;
  readonly keepWhileBlocked: number;
  readonly commandTimeout: number;
}

export type ClonedChunk = Pick<SlotChunk, 'size' | 'width' | 'memory'>;

export type ToThread =
  | { readonly type: 'service'; readonly service: KeptService }
  | { readonly type: 'chunk'; readonly id: number; readonly chunk: ClonedChunk }
  /** New credentials. */
  | { readonly type: 'servers'; readonly id: number; readonly servers: ClonedServers }
  | { readonly type: 'close'; readonly id: number };

export type FromThread =
  | { readonly type: 'loaded'; readonly layout: number }
  /** The thread has opened the connection of a service, or says why it cannot. */
  | { readonly type: 'opened'; readonly id: number; readonly refusal?: string }
  /** Whether its connection answers. */
  | { readonly type: 'connection'; readonly id: number; readonly problem: string | undefined };

/** The interval in which the loop gives a sign of life, for leases of this length, in milliseconds. See `Watchdog`. */
export function beatInterval(leaseTime: number): number {
  return Math.min(1_000, leaseTime / 3);
}

/** How long there is no sign of life before the loop counts as blocked, in milliseconds. */
export function silenceOfBlock(leaseTime: number): number {
  return beatInterval(leaseTime) * 1.5;
}
