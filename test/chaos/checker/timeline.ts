import type { History, HistoryRecord } from '../history.js';
import { before } from './tenure.js';
import type { Violation } from './violation.js';

const BEFORE = 25;
const AFTER = 5;

/** The records around a violation. Those of the calls concerned are marked with `>`. */
export function timeline(history: History, { at, lock, calls }: Violation): string {
  const locksOf = new Map<string, readonly string[]>();
  for (const record of history.records) if (record.kind === 'sent') locksOf.set(record.call, record.locks);
  const concerns = (record: HistoryRecord) => {
    if (lock === undefined || !('call' in record)) return !('lock' in record) || record.lock === lock;
    return locksOf.get(record.call)?.includes(lock) ?? false;
  };
  const lines = history.records
    .map((record, index) => ({ record, order: index + 1 }))
    .filter(({ record }) => concerns(record));
  const involved = ({ record }: { record: HistoryRecord }) => 'call' in record && calls.includes(record.call);
  const isEarlier = ({ record, order }: (typeof lines)[number]) => !before(at, { at: record.at, order });
  const middle = lines.filter(isEarlier).length - 1;
  return lines
    .filter(
      (line, index) => (index >= middle - BEFORE && index <= middle + AFTER) || (index < middle && involved(line)),
    )
    .map((line) => `${involved(line) ? '>' : ' '} ${show(line.record)}`)
    .join('\n');
}

export function show(record: HistoryRecord): string {
  const { at, process, kind, ...details } = record;
  const rest = Object.entries(details)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name} ${typeof value === 'string' ? value : JSON.stringify(value)}`);
  return `${at.toFixed(3).padStart(12)}  ${process.padEnd(4)}  ${kind.padEnd(16)} ${rest.join(', ')}`;
}
