import { type Attributes, type MeterProvider, metrics } from '@opentelemetry/api';
import type { LockEvent } from '../engine/events/lock-events.js';

/** From a round trip to Redis on the same machine up to a long wait, in seconds. */
const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** The instruments of one meter provider. None of their attributes is a lock's name. */
export type LockMetrics = ReturnType<typeof createMetrics>;

function createMetrics(provider: MeterProvider) {
  const meter = provider.getMeter('nestjs-redis-lock');
  const histogram = (name: string, description: string) =>
    meter.createHistogram(`distributed_lock.${name}`, {
      description,
      unit: 's',
      advice: { explicitBucketBoundaries: SECONDS },
    });
  const gauge = (name: string, unit: string, description: string) =>
    meter.createUpDownCounter(`distributed_lock.${name}`, { description, unit });
  const counter = (name: string, unit: string, description: string) =>
    meter.createCounter(`distributed_lock.${name}`, { description, unit });
  return {
    provider,
    acquireDuration: histogram('acquire.duration', 'From the call until the lock was acquired or refused.'),
    holdDuration: histogram('hold.duration', 'From the acquisition until the release or the loss.'),
    held: gauge('held', '{lock}', 'Locks that this process holds.'),
    waiting: gauge('waiting', '{caller}', 'Callers that acquire a lock and have no answer yet.'),
    lost: counter('lost', '{lock}', 'Locks that were lost while they were held.'),
    renewals: counter('renewals', '{renewal}', 'Renewals of leases, by outcome.'),
    skipped: counter('skipped', '{call}', 'Calls that found the lock busy and were answered by onBusy.'),
    handoffs: counter('handoffs', '{handoff}', 'Locks passed on to the next caller within the process.'),
  };
}

/**
 * The instruments of a given provider, or of the global one: that may be set after the instrumentation, and replaced.
 */
export class MetricsSource {
  private latest: LockMetrics | undefined;

  constructor(private readonly provider: MeterProvider | undefined) {}

  get current(): LockMetrics {
    const provider = this.provider ?? metrics.getMeterProvider();
    if (this.latest?.provider === provider) return this.latest;
    this.latest = createMetrics(provider);
    return this.latest;
  }
}

/** What measurements about a lock have in common. */
export function labelsOf({ group, type }: Pick<LockEvent, 'group' | 'type'>): Attributes {
  return { group, type };
}
