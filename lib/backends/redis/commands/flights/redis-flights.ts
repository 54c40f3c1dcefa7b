import type {
  FlightBackend,
  FlightRelease,
  FlightReleaseReply,
  FlightReply,
  FlightRequest,
  FlightRun,
  ResultState,
} from '../../../flight-backend.js';
import type { ScriptContext } from '../../calls/script-context.js';
import type { SingleCalls } from '../../calls/single-calls.js';
import { flightResult, forgottenAt, tokenClock, wantedResult } from '../../lock-keys.js';
import { arrayOf, integerOf, unexpected } from '../../reply-shape.js';
import { scripts } from '../../scripts.js';
import { busyReply, copyOf } from '../acquire-reply.js';

/** What a release answers when the owner did not hold the lock. See scripts/includes/release-replies.lua. */
const NOT_HELD = -1;
/** In bytes. Larger results use a separate connection, so that no renewal waits behind them. */
const LARGE = 64 * 1024;

/**
 * Single flights in Redis. The lock's slot also contains the result, a record that somebody waits for it, and a record
 * that it was forgotten.
 */
export class RedisFlights implements FlightBackend {
  /**
   * @param acquiring the connection of acquisitions
   * @param large sends large results, and opens the connection for them when it is first used
   */
  constructor(
    private readonly context: ScriptContext,
    private readonly acquiring: ScriptContext,
    private readonly large: () => SingleCalls,
  ) {}

  async acquire(request: FlightRequest): Promise<FlightReply> {
    const { acquiring } = this;
    const limit = Math.min(LARGE, request.maxSize);
    return (
      (await this.ask(request, acquiring.single, limit)) ??
      (await this.ask(request, this.large(), request.maxSize)) ??
      // A larger result was stored in the meantime. It is refused like a result that exceeds maxSize.
      Promise.reject(unexpected('large', acquiring.connection.description))
    );
  }

  async release({ key, owner, token, keepFor, value, runnerWaitsUntil }: FlightRelease): Promise<FlightReleaseReply> {
    const { highestToken, connection } = this.context;
    const publish = await this.context.publishMode.command(key);
    const calls = Buffer.byteLength(value) > LARGE ? this.large() : this.context.single;
    const args = [publish, highestToken.seen, owner, String(token), String(keepFor), value];
    const { reply, call } = await calls.callWithTime(
      runnerWaitsUntil,
      scripts['release-flight-5'],
      this.keys(key),
      args,
    );
    const server = connection.description;
    const { resent } = call;
    const [first, second, third] = arrayOf(reply, server);
    if (integerOf(first, server) === NOT_HELD)
      return { released: integerOf(third, server) === 1 ? 'before' : 'gone', resent };
    const refusal = integerOf(second, server) === 1 ? '' : String(third);
    return refusal === '' ? { released: 'now', resent } : { released: 'now', resent, refusal: inWords(refusal) };
  }

  async mayJoin({ key, owner, token }: FlightRun): Promise<boolean> {
    const { single, connection } = this.context;
    const reply = await single.call(scripts['may-join-2'], [key, forgottenAt(key)], [owner, String(token)]);
    return integerOf(reply, connection.description) === 1;
  }

  async forget(key: string): Promise<boolean> {
    const { single, connection, highestToken } = this.context;
    const keys = [tokenClock(connection, key), key, flightResult(key), forgottenAt(key)];
    const reply = await single.call(scripts['forget-result-4'], keys, [highestToken.seen]);
    return integerOf(reply, connection.description) === 1;
  }

  async inspect(key: string): Promise<ResultState | undefined> {
    const { single, connection } = this.context;
    const reply = await single.call(scripts['inspect-result-2'], [tokenClock(connection, key), flightResult(key)], []);
    if (reply === null) return undefined;
    const [size, remaining] = arrayOf(reply, connection.description).map((n) => integerOf(n, connection.description));
    return { size, remaining };
  }

  /** @returns undefined: there is a result that is larger than `limit` */
  private async ask(request: FlightRequest, calls: SingleCalls, limit: number): Promise<FlightReply | undefined> {
    const { highestToken, replicaCheck, connection } = this.acquiring;
    const { key, owner, leaseTime, begin, keepFor, maxSize } = request;
    const args = [highestToken.seen, leaseTime, owner, begin ?? '', keepFor, limit, maxSize].map(String);
    const { reply, call } = await calls.callInTime(scripts['acquire-flight-5'], this.keys(key), args);
    const server = connection.description;
    const [kind, ...fields] = arrayOf(reply, server);
    if (kind === 'large') return undefined;
    if (kind === 'acquired') {
      await replicaCheck?.confirm(call, [{ key, type: 'flight', owner }]);
      return { ...highestToken.acquired(integerOf(fields[0], server), 0), ...copyOf(call) };
    }
    if (kind === 'busy') {
      const [ttl, holder, reading, heldAs] = fields;
      return { ...busyReply(ttl, holder, server, heldAs), reading: integerOf(reading, server), ...copyOf(call) };
    }
    if (kind !== 'result') throw unexpected(reply, server);
    const [run, ...rest] = fields;
    const value = rest.pop();
    const [ended, before, kept, reading, age] = rest.map((n) => integerOf(n, server));
    if (typeof value !== 'string') throw unexpected(value, server);
    const result = { value, run: String(run), ended, before, kept };
    return { acquired: false, remaining: 0, holder: String(run), reading, result, age, ...copyOf(call) };
  }

  private keys(key: string): string[] {
    const clock = tokenClock(this.context.connection, key);
    return [clock, key, flightResult(key), wantedResult(key), forgottenAt(key)];
  }
}

/** Why Redis did not store a result. */
function inWords(refusal: string): string {
  if (/^-?OOM /.test(refusal)) return 'Redis has no memory left (maxmemory)';
  return `Redis refused it: ${refusal.slice(0, 200)}`;
}
