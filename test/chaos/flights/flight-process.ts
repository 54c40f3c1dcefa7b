import { RecordingProcess } from '../recording-process.js';
import type { FlightRecord } from './flight-history.js';
import type { FlightSpec } from './flight-program.js';

export type FlightProcess = RecordingProcess<FlightSpec, FlightRecord>;

/** Starts a separate process that keeps single flights busy. */
export function startFlights(spec: FlightSpec, records: FlightRecord[]): FlightProcess {
  return new RecordingProcess(spec, {
    program: 'test/chaos/flights/flight-program.ts',
    record: (record) => void records.push(record),
    crashed: (at) => void records.push({ at, process: spec.process, kind: 'crashed' }),
    endsWithin: 30_000,
  });
}
