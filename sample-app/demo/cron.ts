import { setTimeout as sleep } from 'node:timers/promises';
import type { Report } from '../reports/nightly-report.service.js';
import { REPORT_PERIOD, type Replica } from './shop.js';

/** What the replicas did each time the report was due on all of them. */
export interface CronRuns {
  readonly due: number;
  readonly runs: ReadonlyMap<string, number>;
  readonly skipped: number;
  /** Whether exactly one replica ran it each time. */
  readonly once: boolean;
}

const TIMEOUT = 10_000;

/** Waits until the report was due this many times. */
export async function cronRuns(replicas: readonly Replica[], times: number): Promise<CronRuns> {
  const deadline = performance.now() + TIMEOUT;
  for (;;) {
    const runs = await readRuns(replicas);
    if (runs.due >= times || performance.now() > deadline) return runs;
    await sleep(100);
  }
}

async function readRuns(replicas: readonly Replica[]): Promise<CronRuns> {
  const settled = Date.now() - REPORT_PERIOD / 2; // a later run may not be reported by all replicas yet
  const answers = await Promise.all(
    replicas.map((replica) =>
      replica.ask<{ replica: string; reports: Report[]; skipped: number[] }>('GET', '/reports'),
    ),
  );
  const moments = new Map<number, { ran: string[]; skipped: number }>();
  const momentOf = (at: number) => {
    const key = Math.round(at / REPORT_PERIOD);
    const moment = moments.get(key) ?? { ran: [], skipped: 0 };
    moments.set(key, moment);
    return moment;
  };
  for (const { body } of answers) {
    for (const { at } of body.reports) if (at < settled) momentOf(at).ran.push(body.replica);
    for (const at of body.skipped) if (at < settled) momentOf(at).skipped++;
  }

  const ofAll = [...moments.values()].filter(({ ran, skipped }) => ran.length + skipped === replicas.length);
  const ran = ofAll.flatMap((moment) => moment.ran);
  return {
    due: ofAll.length,
    runs: new Map(replicas.map(({ name }) => [name, ran.filter((replica) => replica === name).length])),
    skipped: ofAll.reduce((sum, { skipped }) => sum + skipped, 0),
    once: ofAll.length > 0 && ofAll.every((moment) => moment.ran.length === 1),
  };
}
