import type { LockType } from '../backends/lock-backend.js';
import type { AcquisitionQueue } from './acquisition-queue.js';

/** After so many removals the map is made anew. */
const REMOVALS = 1_024;

/**
 * The queues of one engine by the locks that they are for. They come and go with every acquisition, and V8's Map then leaves a chain of its former
 * tables behind, which the young generation's collector has to carry along: a fresh copy now and then cuts the chain, and halved
 * the client's CPU time an acquisition when that was measured (64 in flight, Node.js 20).
 */
export class QueueTable {
  private queues = new Map<string, AcquisitionQueue>();
  private removals = 0;

  get size(): number {
    return this.queues.size;
  }

  get(type: LockType, key: string): AcquisitionQueue | undefined {
    return this.queues.get(idOf(type, key));
  }

  add(queue: AcquisitionQueue): void {
    this.queues.set(idOf(queue.type, queue.key), queue);
  }

  /** Another queue of the same lock stays: this one was removed before. */
  remove(queue: AcquisitionQueue): void {
    const id = idOf(queue.type, queue.key);
    if (this.queues.get(id) !== queue) return;
    this.queues.delete(id);
    if (++this.removals < REMOVALS) return;
    this.removals = 0;
    this.queues = new Map(this.queues);
  }

  values(): Iterable<AcquisitionQueue> {
    return this.queues.values();
  }
}

/** Readers and writers share a queue. */
function idOf(type: LockType, key: string): string {
  return type === 'reentrant' ? key : `${type === 'read' ? 'write' : type}\0${key}`;
}
