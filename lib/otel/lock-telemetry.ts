import { type Channel, channel, type TracingChannel, tracingChannel } from 'node:diagnostics_channel';
import { type Context, context, diag, ROOT_CONTEXT, type Span } from '@opentelemetry/api';
import type { AcquireMessage, HoldMessage, PointMessages } from '../engine/events/channels.js';
import type { LockEvents } from '../engine/events/lock-events.js';
import { type LockMetrics, labelsOf, type MetricsSource } from './lock-metrics.js';
import { type LockSpans, runIn } from './lock-spans.js';

/** The state of an acquisition or a hold whose start was seen. */
interface Traced {
  readonly span: Span | undefined;
  /** The instruments that counted its start. They also count its end. */
  readonly metrics: LockMetrics | undefined;
}

/** Turns the messages of the channels into spans and measurements. */
export class LockTelemetry {
  private readonly acquiring = new Map<AcquireMessage, Traced>();
  private readonly holding = new Map<HoldMessage, Traced>();
  /** Open spans of holds, by owner. */
  private readonly held = new Map<string, Span>();
  /** What the span of a hold needs from its acquisition. */
  private readonly origins = new WeakMap<
    AcquireMessage,
    { readonly caller: Context; readonly span: Span | undefined }
  >();
  private readonly subscriptions: readonly (() => void)[];

  constructor(
    private readonly spans: LockSpans | undefined,
    private readonly metrics: MetricsSource | undefined,
  ) {
    const counted = this.metrics;
    this.subscriptions = [
      subscribe(acquireChannel.start, (message) => this.acquireStarted(message)),
      subscribe(acquireChannel.asyncEnd, (message) => this.acquireEnded(message)),
      subscribe(holdChannel.start, (message) => this.holdStarted(message)),
      subscribe(holdChannel.asyncEnd, (message) => this.holdEnded(message)),
      subscribePoint('nestjs-redis-lock:renewal-failed', (event) => this.renewalFailed(event)),
      ...(counted === undefined ? [] : countPoints(counted)),
    ];
  }

  /** Ends the open spans, and resets the counters of held locks and waiting callers. */
  stop(): void {
    for (const unsubscribe of this.subscriptions) unsubscribe();
    for (const [message, { span, metrics }] of this.acquiring) {
      guarded(() => metrics?.waiting.add(-1, labelsOf(message)));
      guarded(() => span?.end());
    }
    for (const [message, { span, metrics }] of this.holding) {
      guarded(() => metrics?.held.add(-message.taken.length, labelsOf(message)));
      guarded(() => span?.end());
    }
    this.acquiring.clear();
    this.holding.clear();
    this.held.clear();
  }

  private acquireStarted(message: AcquireMessage): void {
    const caller = guarded(() => context.active()) ?? ROOT_CONTEXT;
    const span = guarded(() => this.spans?.startAcquire(message, caller));
    if (span !== undefined) message.run = runIn(span);
    const metrics = message.standsBy ? undefined : this.count(({ waiting }) => waiting.add(1, labelsOf(message)));
    this.acquiring.set(message, { span, metrics });
    this.origins.set(message, { caller, span });
  }

  private acquireEnded(message: AcquireMessage): void {
    const traced = this.acquiring.get(message);
    if (traced === undefined) return;
    this.acquiring.delete(message);
    const { span, metrics } = traced;
    if (span !== undefined) guarded(() => this.spans?.endAcquire(span, message));
    if (metrics === undefined) return;
    const { outcome, reentry, waited = 0 } = message;
    const labels = labelsOf(message);
    guarded(() => metrics.waiting.add(-1, labels));
    if (outcome === 'skipped') guarded(() => metrics.skipped.add(1, labels));
    if (!reentry) guarded(() => metrics.acquireDuration.record(waited / 1_000, { ...labels, outcome }));
  }

  private holdStarted(message: HoldMessage): void {
    const { caller, span: acquire } = this.origins.get(message.acquisition) ?? {};
    const parent = caller ?? guarded(() => context.active()) ?? ROOT_CONTEXT;
    const span = guarded(() => this.spans?.startHold(message, parent, acquire));
    if (span !== undefined) {
      message.run = runIn(span);
      for (const name of message.taken) this.held.set(message.owners.get(name) as string, span);
    }
    const metrics = this.count(({ held }) => held.add(message.taken.length, labelsOf(message)));
    this.holding.set(message, { span, metrics });
  }

  private holdEnded(message: HoldMessage): void {
    const traced = this.holding.get(message);
    if (traced === undefined) return;
    this.holding.delete(message);
    const { span, metrics } = traced;
    if (span !== undefined) guarded(() => this.spans?.endHold(span, message));
    // A lock that is handed off keeps its owner.
    for (const owner of message.owners.values()) if (this.held.get(owner) === span) this.held.delete(owner);
    if (metrics === undefined) return;
    const { outcome, held = 0, reentry } = message;
    const labels = labelsOf(message);
    guarded(() => metrics.held.add(-message.taken.length, labels));
    if (!reentry) guarded(() => metrics.holdDuration.record(held / 1_000, { ...labels, outcome }));
  }

  private renewalFailed(event: LockEvents['renewalFailed']): void {
    this.count(({ renewals }) => renewals.add(1, { ...labelsOf(event), outcome: 'failed' }));
    const span = this.held.get(event.owner);
    if (span !== undefined) guarded(() => this.spans?.renewalFailed(span, event.error, event.remainingTime));
  }

  /** @returns the instruments that have counted it */
  private count(measure: (metrics: LockMetrics) => void): LockMetrics | undefined {
    return guarded(() => {
      const metrics = this.metrics?.current;
      if (metrics !== undefined) measure(metrics);
      return metrics;
    });
  }
}

function countPoints(metrics: MetricsSource): readonly (() => void)[] {
  return [
    subscribePoint('nestjs-redis-lock:lost', (event) => guarded(() => metrics.current.lost.add(1, labelsOf(event)))),
    subscribePoint('nestjs-redis-lock:handoff', (event) =>
      guarded(() => metrics.current.handoffs.add(1, labelsOf(event))),
    ),
    subscribePoint('nestjs-redis-lock:blocked', () => guarded(() => metrics.current.blocked.add(1))),
    subscribePoint('nestjs-redis-lock:renewed', (event) =>
      guarded(() => metrics.current.renewals.add(1, { ...labelsOf(event), outcome: 'renewed' })),
    ),
  ];
}

// The channels are opened by name, and only types of the library are imported. An application loads this entry before
// everything that it wants to instrument, and the library would load ioredis.
const acquireChannel: TracingChannel<unknown, AcquireMessage> = tracingChannel('nestjs-redis-lock:acquire');
const holdChannel: TracingChannel<unknown, HoldMessage> = tracingChannel('nestjs-redis-lock:hold');

/** @returns a function that ends the subscription */
function subscribePoint<Name extends keyof PointMessages>(
  name: Name,
  listener: (message: PointMessages[Name]) => void,
): () => void {
  return subscribe(channel(name) as Channel<unknown, PointMessages[Name]>, listener);
}

/** @returns a function that ends the subscription */
function subscribe<Message>(to: Channel<unknown, Message>, listener: (message: Message) => void): () => void {
  const heard = (message: unknown) => listener(message as Message);
  to.subscribe(heard);
  return () => void to.unsubscribe(heard);
}

/**
 * Calls the application's OpenTelemetry SDK. If a processor, an exporter or a meter throws, this affects neither
 * locks nor the process.
 */
function guarded<T>(call: () => T): T | undefined {
  try {
    return call();
  } catch (error) {
    report(error);
    return undefined;
  }
}

function report(error: unknown): void {
  try {
    diag.error('nestjs-redis-lock: the OpenTelemetry SDK threw; something is missing in traces or metrics', error);
  } catch {
    // There is nobody left to report the error to.
  }
}
