import type {
  FlightBackend,
  FlightBusy,
  FlightRelease,
  LockBackend,
  StoredResult,
} from '../../../lib/backends/lock-backend.js';

/** In milliseconds. */
const REMEMBERED = 1_000;

/** A way in which a backend breaks the promises of single flights. */
export type FlightBreakage = (flights: FlightBackend) => Partial<FlightBackend>;

/** The backend, with these single flights. */
export function breakFlights(backend: LockBackend, breakage: FlightBreakage): LockBackend {
  const { flights } = backend;
  if (flights === undefined) throw new Error('it has no single flights');
  const bound = boundTo(flights);
  const broken = { ...bound, ...breakage(bound) };
  return new Proxy(backend, {
    get: (target, property) => {
      if (property === 'flights') return broken;
      const value = Reflect.get(target, property);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

function boundTo(flights: FlightBackend): FlightBackend {
  return {
    acquire: (request) => flights.acquire(request),
    release: (release) => flights.release(release),
    mayJoin: (run) => flights.mayJoin(run),
    forget: (key) => flights.forget(key),
    inspect: (key) => flights.inspect(key),
  };
}

/** Grants every tenth lock that is busy. */
export const grantsTwice: FlightBreakage = (flights) => {
  let busy = 0;
  return {
    async acquire(request) {
      const reply = await flights.acquire(request);
      if (reply.acquired || reply.result !== undefined || ++busy % 10 !== 0) return reply;
      return { acquired: true, token: reply.reading, reserved: 0 } as never;
    },
  };
};

/** Never answers the fortieth request. */
export const losesQuestions: FlightBreakage = (flights) => {
  let asked = 0;
  return { acquire: (request) => (++asked === 40 ? new Promise(() => {}) : flights.acquire(request)) };
};

/** Gives a caller a result that it may not have, if `isGiven`. Results are remembered for {@link REMEMBERED}. */
export const givesOldResults = (isGiven: (keepFor: number, age: number) => boolean): FlightBreakage => {
  const last = new Map<string, { readonly release: FlightRelease; readonly at: number }>();
  return (flights) => ({
    async acquire(request) {
      const old = last.get(request.key);
      if (old === undefined || !isGiven(request.keepFor, performance.now() - old.at)) return flights.acquire(request);
      const { value, owner: run, token } = old.release;
      const result: StoredResult = { value, run, ended: token + 1, before: token + 1, kept: Number.MAX_SAFE_INTEGER };
      const reply: FlightBusy = { acquired: false, remaining: 0, holder: run, reading: token + 2, result, age: 1 };
      return reply;
    },
    async release(release) {
      const reply = await flights.release(release);
      const now = performance.now();
      if (now - (last.get(release.key)?.at ?? 0) > REMEMBERED) last.set(release.key, { release, at: now });
      return reply;
    },
  });
};

/** Confirms forgetResult() without forgetting anything. */
export const forgetsNothing: FlightBreakage = () => ({ forget: async () => true, mayJoin: async () => true });

/**
 * Lets forgetResult() delete only the stored result: the result of a run that is under way is kept, and later callers
 * join that run.
 */
export const forgetsResultsAlone: FlightBreakage = (flights) => ({
  mayJoin: async () => true,
  // As if the run had begun after everything that was forgotten.
  release: (release) => flights.release({ ...release, token: Number.MAX_SAFE_INTEGER }),
});

/** Stores the result of another name. */
export const mixesNames: FlightBreakage = (flights) => {
  let last = '"nobody"';
  return {
    release(release) {
      const value = last;
      last = release.value;
      return flights.release({ ...release, value });
    },
  };
};
