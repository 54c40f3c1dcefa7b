import type { Subscription } from '../../lib/backends/lock-backend.js';
import type { SynchronizerBackend, SynchronizerKind } from '../../lib/backends/synchronizer-backend.js';

/** What those who wait ask a backend of semaphores and latches. */
const QUESTIONS = ['takePermits', 'takeLeasedPermits', 'getCount'] as const;

interface Wait {
  readonly key: string;
  ready: boolean;
  /** It was asked once more after the subscription was there, as before it messages may have been missed. */
  lookedAgain: boolean;
}

/** Sees at the port which semaphores and latches a process waits for. */
export class WatchedWaits {
  /** Questions without an answer. */
  private asking = 0;
  private readonly waits = new Set<Wait>();

  /** @param backend is changed: its calls are seen from now on */
  constructor(backend: SynchronizerBackend) {
    for (const question of QUESTIONS) {
      const ask = backend[question].bind(backend) as (key: string, ...rest: unknown[]) => Promise<unknown>;
      const watched = (key: string, ...rest: unknown[]) => this.watch(key, ask(key, ...rest));
      Object.assign(backend, { [question]: watched });
    }
    const subscribe = backend.subscribe.bind(backend);
    backend.subscribe = (key, kind: SynchronizerKind, listener) => this.open(key, subscribe(key, kind, listener));
  }

  /** Subscriptions that are open. */
  get count(): number {
    return this.waits.size;
  }

  /** Nothing more will be asked until a message comes, or a time is over. */
  get areQuiet(): boolean {
    return this.asking === 0 && [...this.waits].every(({ lookedAgain }) => lookedAgain);
  }

  private async watch(key: string, answer: Promise<unknown>): Promise<unknown> {
    const waits = [...this.waits].filter((wait) => wait.key === key && wait.ready);
    this.asking++;
    try {
      const reply = await answer;
      for (const wait of waits) wait.lookedAgain = true;
      return reply;
    } finally {
      this.asking--;
    }
  }

  private open(key: string, subscription: Subscription): Subscription {
    const wait: Wait = { key, ready: false, lookedAgain: false };
    this.waits.add(wait);
    void subscription.ready.then(() => {
      wait.ready = true;
    });
    const close = () => {
      this.waits.delete(wait);
      subscription.close();
    };
    return { ready: subscription.ready, close };
  }
}
