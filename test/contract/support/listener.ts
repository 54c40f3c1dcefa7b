import type { Subscription, Wake } from '../../../lib/backends/lock-backend.js';
import { until } from '../../support/until.js';

/** A subscription that counts what it receives. */
export class Listener {
  /** Messages only, without resyncs. */
  readonly heard: Extract<Wake, { kind: 'message' }>[] = [];
  readonly ready: Promise<void>;
  readonly close: () => void;

  constructor(subscribe: (listener: (wake: Wake) => void) => Subscription) {
    const subscription = subscribe((wake) => {
      if (wake.kind === 'message') this.heard.push(wake);
    });
    this.ready = subscription.ready;
    this.close = () => subscription.close();
  }

  /** Settles with the `count`-th message. */
  async hears(count = 1): Promise<void> {
    await until(() => this.heard.length >= count);
  }
}
