import { LockEngine } from '../../../lib/engine/lock-engine.js';
import type { Milliseconds } from '../../../lib/engine/terms/duration.js';
import type { ReleaseMode } from '../../../lib/engine/terms/lock-options.js';
import { LockService } from '../../../lib/service/lock-service.js';
import { ENGINE_DEFAULTS } from '../../support/engine-defaults.js';
import type { History } from '../history.js';
import { HistoryRecorder } from '../history-recorder.js';
import { PermitRecorder } from '../permit-recorder.js';
import { SimulatedLink } from './simulated/simulated-link.js';
import type { SimulatedProcess } from './simulated/simulated-process.js';
import type { VirtualTime } from './simulated/virtual-time.js';

export interface MemberSettings {
  readonly watchdogTimeout: number;
  readonly waiterTimeout: number;
  readonly release: ReleaseMode;
}

/** Milliseconds. */
const SHUTDOWN_TIMEOUT = 500;
/** Shorter than some of the faults. */
export const OUTAGE_TIMEOUT = 300;

/** A process with a lock service. Everything in it is real, except the clock and the network. */
export class Member {
  readonly locks: LockService;
  readonly recorder: HistoryRecorder;
  readonly permits: PermitRecorder;
  closing = false;

  constructor(
    time: VirtualTime,
    readonly process: SimulatedProcess,
    readonly link: SimulatedLink,
    history: History,
    settings: MemberSettings,
  ) {
    const ms = (value: number) => value as Milliseconds;
    const engine = new LockEngine({
      ...ENGINE_DEFAULTS,
      backend: link,
      runtime: process,
      logger: { warn: () => {}, error: () => {} },
      clientId: process.name,
      keyPrefix: '',
      watchdogTimeout: ms(settings.watchdogTimeout),
      waiterTimeout: ms(settings.waiterTimeout),
      outageTimeout: ms(OUTAGE_TIMEOUT),
      shutdownTimeout: ms(SHUTDOWN_TIMEOUT),
      release: settings.release ?? 'confirmed',
    });
    this.locks = new LockService(engine);
    this.recorder = new HistoryRecorder(history, process.name, this.locks, () => time.now, process.tick);
    this.permits = new PermitRecorder(this.recorder, () => time.now);
    process.onStall = (until) => this.recorder.add({ kind: 'stalled', until });
    link.onReused = (lock, owner) => this.recorder.add({ kind: 'reused', lock, owner });
    link.onForced = (lock, owners) => this.recorder.add({ kind: 'forced', lock, owners });
    link.synchronizers.onLease = (ids, deadline) => this.permits.leased(ids, deadline);
  }

  /** Ends without warning. */
  crash(): void {
    if (this.process.dead) return;
    this.process.crash();
    this.link.abandon();
    this.recorder.add({ kind: 'crashed' });
  }

  /** Ends in order. */
  close(): Promise<void> {
    if (!this.closing) this.recorder.add({ kind: 'closing', keepsFor: SHUTDOWN_TIMEOUT * 0.99 });
    this.closing = true;
    return this.locks.close();
  }

  /** The unfinished work of the engine. */
  get leftovers(): Readonly<Record<string, number>> {
    const activity = this.locks.engine.activity();
    return {
      ...activity,
      // The queues of a closed service are not counted.
      permitQueues: this.closing ? 0 : activity.permitQueues,
      subscriptions: this.link.subscriptions,
      timers: this.process.timers,
    };
  }
}
