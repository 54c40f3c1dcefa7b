import { setTimeout as sleep } from 'node:timers/promises';
import type { TcpProxy } from '../../support/network/tcp-proxy.js';
import type { RedisServer } from '../../support/servers/redis-server.js';
import { ScriptMonitor, type ScriptRun } from '../../support/servers/script-monitor.js';
import { machineTime } from '../history.js';
import type { FlightViolation } from './flight-checker.js';
import type { FlightRecord } from './flight-history.js';

/** What the server did with the lock and with the result of one flight. */
export type ServerEvent =
  | { readonly kind: 'taken' | 'released' | 'stored'; readonly key: string; readonly owner: string }
  /** The lock got a lease that ends then, by the server's clock. */
  | { readonly kind: 'leased'; readonly key: string; readonly until: number }
  | { readonly kind: 'forgotten'; readonly key: string }
  /** It was killed, and is back without its data. MONITOR may not have shown its last commands. */
  | { readonly kind: 'data lost' };

/**
 * `time`: milliseconds on the server's clock, which a test may set. `seen`: when the test read about it, on the clock
 * of {@link FlightRecord}s, which is after the server did it.
 */
export type ServerRecord = ServerEvent & { readonly time: number; readonly seen: number };

const RESULT = /^nestjs_redis_lock_result:\{(.*)\}$/;
/**
 * How exact the times of leases are, in milliseconds: MONITOR and scripts read the server's clock at different moments.
 */
const EXACT = 50;

/** Records what a server does for single flights, in its order, as its MONITOR shows it. */
export class ServerOrder {
  /** The scripts that it ran, and its restarts. */
  private readonly seen: { readonly what: ScriptRun | 'data lost'; readonly at: number }[] = [];

  static async of(server: RedisServer): Promise<ServerOrder> {
    return new ServerOrder(await ScriptMonitor.start(server));
  }

  private constructor(private readonly monitor: ScriptMonitor) {
    monitor.onRun = (run) => this.seen.push({ what: run, at: machineTime() });
  }

  /**
   * Kills the server, and starts it again after `pause` milliseconds. The clients use the proxy, which refuses them
   * until the monitor is back, so that none of their commands is missed.
   *
   * @returns a time at which the data was lost, and nobody had a new lock yet
   */
  async restart(server: RedisServer, proxy: TcpProxy, pause: number): Promise<number> {
    await server.kill();
    await proxy.refuse();
    await sleep(pause);
    const monitoring = this.monitor.monitoringAgain();
    await server.start();
    await monitoring;
    const at = machineTime();
    this.seen.push({ what: 'data lost', at });
    await proxy.heal();
    return at;
  }

  /** Stops recording, and returns all records. */
  async end(): Promise<readonly ServerRecord[]> {
    await this.monitor.caughtUp();
    this.monitor.stop();
    return this.seen.flatMap(({ what, at }): ServerRecord[] => {
      if (what === 'data lost') return [{ kind: what, time: Number.NaN, seen: at }];
      return what.commands.flatMap((command) => {
        const event = eventOf(command, what);
        return event === undefined ? [] : [{ ...event, time: what.time, seen: at }];
      });
    });
  }
}

function eventOf(
  [command, key = '', ...args]: readonly string[],
  { script, time }: ScriptRun,
): ServerEvent | undefined {
  const of = RESULT.exec(key)?.[1];
  if (of !== undefined) {
    if (command === 'DEL' && script === 'forget-result-4') return { kind: 'forgotten', key: of };
    return command === 'HSET' ? { kind: 'stored', key: of, owner: args[args.indexOf('run') + 1] } : undefined;
  }
  if (key.startsWith('nestjs_redis_lock_')) return undefined;
  if (command === 'HSET') return { kind: 'taken', key, owner: args[0] };
  if (command === 'HDEL') return { kind: 'released', key, owner: args[0] };
  return command === 'PEXPIRE' ? { kind: 'leased', key, until: time + Number(args[0]) } : undefined;
}

/** A run according to the server. `taken` is its place in the server's order. */
interface Flight {
  taken: number;
  stored?: ServerRecord;
  /** The server was killed during the run. Whether the result was stored before that may not have been seen. */
  cut?: boolean;
}

/**
 * Checks the same rules as `checkFlights`, but in the server's order. There, a result that is too old cannot be
 * explained by messages that were under way: whatever the test has read about had already happened on the server, so
 * every later call came after it.
 *
 * - one run at a time: an owner gets the lock only after its holder has released it, or the lease has ended;
 * - stored by the holder: a result is stored only while its owner holds the lock;
 * - a real run: a result that another process received was stored;
 * - not older than the question, not older than keepFor, not forgotten: as in `checkFlights`.
 *
 * @param prefix the `keyPrefix` of the processes
 * @param ageSlack how far the measured age of a result may be wrong, in milliseconds
 */
export function checkServerOrder(
  records: readonly FlightRecord[],
  server: readonly ServerRecord[],
  { prefix, ageSlack }: { readonly prefix: string; readonly ageSlack: number },
): FlightViolation[] {
  const flights = new Map<string, Flight>();
  return [...checkHolders(server, flights), ...checkResults(records, server, flights, prefix, ageSlack)];
}

/** @param flights receives the runs according to the server, by their owners */
function checkHolders(server: readonly ServerRecord[], flights: Map<string, Flight>): FlightViolation[] {
  const found: FlightViolation[] = [];
  const holders = new Map<string, { readonly owner: string; until: number }>();
  for (const [order, record] of server.entries()) {
    if (record.kind === 'data lost') {
      for (const { owner } of holders.values()) (flights.get(owner) as Flight).cut = true;
      holders.clear();
      continue;
    }
    const { kind, key, time } = record;
    const holder = holders.get(key);
    if (kind === 'leased' && holder !== undefined) holder.until = record.until;
    if (kind === 'released' && holder?.owner === record.owner) holders.delete(key);
    if (kind === 'taken') {
      const { owner } = record;
      if (holder !== undefined && holder.owner !== owner && holder.until - EXACT > time)
        found.push({
          rule: 'one run at a time',
          message: `${key}: ${owner} got the lock, which ${holder.owner} had for ${Math.round(holder.until - time)} ms more`,
        });
      holders.set(key, { owner, until: Number.POSITIVE_INFINITY });
      flights.set(owner, { ...flights.get(owner), taken: order });
    }
    if (kind === 'stored') {
      const flight = flights.get(record.owner);
      if (flight !== undefined) flight.stored ??= record;
      const isHeld = holder?.owner === record.owner && time < holder.until + EXACT;
      if (!isHeld)
        found.push({
          rule: 'stored by the holder',
          message: `${key}: a result of ${record.owner} was stored, which did not have the lock any more`,
        });
    }
  }
  return found;
}

function checkResults(
  records: readonly FlightRecord[],
  server: readonly ServerRecord[],
  flights: ReadonlyMap<string, Flight>,
  prefix: string,
  ageSlack: number,
): FlightViolation[] {
  const runs = new Map<string, { readonly owner: string; readonly process: string }>();
  const calls = new Map<string, FlightRecord & { readonly kind: 'asked' }>();
  for (const record of records) {
    if (record.kind === 'began') runs.set(record.run, record);
    if (record.kind === 'asked') calls.set(record.call, record);
  }
  const forgets = new Map<string, { readonly order: number; readonly seen: number }[]>();
  for (const [order, record] of server.entries()) {
    if (record.kind !== 'forgotten') continue;
    const { key, seen } = record;
    forgets.set(key, [...(forgets.get(key) ?? []), { order, seen }]);
  }

  return records.flatMap((record): FlightViolation[] => {
    if (record.kind !== 'answered' || record.run === undefined || record.run === record.call) return [];
    const call = calls.get(record.call);
    const run = runs.get(record.run);
    const flight = run && flights.get(run.owner);
    if (call === undefined || run === undefined || flight === undefined) return []; // checkFlights reports this
    const { name, keepFor, at } = call;
    const found: FlightViolation[] = [];
    const report = (rule: FlightViolation['rule'], what: string) =>
      found.push({
        rule,
        message: `${name}: ${record.call} asked with keepFor ${keepFor}, and got the result of ${record.run}, ${what}`,
      });
    const { stored, taken, cut } = flight;
    if (stored === undefined && !cut && run.process !== record.process) report('a real run', 'which was never stored');
    const age = at - (stored?.seen ?? at);
    if (keepFor === 0 && age > 0)
      report('not older than the question', `which had been stored for ${age.toFixed(1)} ms`);
    if (keepFor > 0 && age > keepFor + ageSlack) report('not older than keepFor', `which was ${age.toFixed(1)} ms old`);
    const forgotten = forgets.get(prefix + name)?.find(({ order, seen }) => order > taken && seen < at);
    if (forgotten !== undefined)
      report(
        'not forgotten',
        `which had been forgotten for ${(at - forgotten.seen).toFixed(1)} ms, and began before that`,
      );
    return found;
  });
}
