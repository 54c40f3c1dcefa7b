import { type Attributes, type MeterProvider, metrics } from '@opentelemetry/api';
import type { LockEvent } from '../engine/events/lock-events.js';

/** Histogram bucket bounds in seconds, from a round trip to a local Redis to a long wait. */
const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** The instruments of one meter provider. Their attributes never contain the name of a lock. */
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
    acquireDuration: histogram('acquire.duration', 'Time from the call until the lock was acquired or refused.'),
    holdDuration: histogram('hold.duration', 'Time from acquiring the lock to releasing or losing it.'),
    held: gauge('held', '{lock}', 'Locks that this process holds.'),
    waiting: gauge('waiting', '{caller}', 'Callers still waiting to acquire a lock.'),
    lost: counter('lost', '{lock}', 'Locks that were lost while they were held.'),
    renewals: counter('renewals', '{renewal}', 'Renewals of leases, by outcome.'),
    skipped: counter('skipped', '{call}', 'Calls that found the lock busy and were answered by onBusy.'),
    blocked: counter('blocked', '{block}', 'Blocks of the event loop that locks have outlived by keepWhileBlocked.'),
    handoffs: counter('handoffs', '{handoff}', 'Locks passed on to the next caller within the process.'),
  };
}

/**
 * The instruments of the given provider or, by default, of the global one. The global provider may be set or replaced
 * after instrumentation starts.
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

/** The attributes shared by all measurements of a lock. */
export function labelsOf({ group, type }: Pick<LockEvent, 'group' | 'type'>): Attributes {
  return { group, type };
}
