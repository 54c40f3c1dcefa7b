import type { LockType } from '../../../lib/backends/lock-backend.js';
import { isReadWrite } from './lock-model.js';

export interface Asking {
  readonly id: number;
  readonly name: string;
  readonly type: LockType;
  /** When its wait ends; 0: it does not wait. */
  readonly deadline: number;
}

/** How a call ended, if it did. */
export type Fate = 'waits' | 'holds' | 'released' | 'busy' | 'aborted' | 'lost';

/**
 * A model of what callers of one service observe: they are served in the order of their arrival, and readers together.
 */
export class QueueModel {
  now = 0;
  readonly fates: Fate[] = [];
  private readonly holding = new Map<string, Asking[]>();
  private readonly waiting = new Map<string, Asking[]>();

  ask(asking: Asking, triesOnce: boolean): void {
    const { id, name } = asking;
    const waiting = this.waitingFor(name);
    if (waiting.length === 0 && this.admits(asking)) this.serve(asking);
    else if (triesOnce) this.fates[id] = 'busy';
    else {
      waiting.push(asking);
      this.fates[id] = 'waits';
    }
  }

  release(id: number): void {
    this.leave(this.holding, id, 'released');
  }

  abort(id: number): void {
    this.leave(this.waiting, id, 'aborted');
  }

  /** Frees the lock, whoever holds it. Returns whether it was held. */
  force(name: string): boolean {
    const holders = this.holding.get(name) ?? [];
    for (const { id } of holders) this.fates[id] = 'lost';
    this.holding.delete(name);
    this.serveNext(name);
    return holders.length > 0;
  }

  elapse(time: number): void {
    this.now += time;
    const over = [...this.waiting.values()].flat().filter(({ deadline }) => deadline <= this.now);
    for (const { id } of over) this.leave(this.waiting, id, 'busy');
  }

  private leave(from: Map<string, Asking[]>, id: number, fate: Fate): void {
    for (const [name, askings] of from) {
      const at = askings.findIndex((asking) => asking.id === id);
      if (at < 0) continue;
      askings.splice(at, 1);
      this.fates[id] = fate;
      this.serveNext(name);
    }
  }

  private serveNext(name: string): void {
    const waiting = this.waitingFor(name);
    while (waiting.length > 0 && this.admits(waiting[0])) this.serve(waiting.shift()!);
  }

  private serve(asking: Asking): void {
    this.holding.set(asking.name, [...(this.holding.get(asking.name) ?? []), asking]);
    this.fates[asking.id] = 'holds';
  }

  private admits({ name, type }: Asking): boolean {
    const holders = this.holding.get(name) ?? [];
    return holders.length === 0 || (type === 'read' && holders.every((holder) => holder.type === 'read'));
  }

  private waitingFor(name: string): Asking[] {
    const waiting = this.waiting.get(name) ?? [];
    this.waiting.set(name, waiting);
    return waiting;
  }
}

/** Each type has its own lock. Readers and writers share one. */
export function nameFor(type: LockType): string {
  return isReadWrite(type) ? 'page' : type;
}
