import type { ERRANDS } from './errands/errands.js';
import type { LATCH_ERRANDS } from './errands/latch-errands.js';
import type { NEWEST_ERRANDS } from './errands/newest-errands.js';
import type { PERMIT_ERRANDS } from './errands/permit-errands.js';
import type { PLACE_ERRANDS } from './errands/place-errands.js';
import type { SCATTERED_ERRANDS } from './errands/scattered-errands.js';
import type { SCOPED_ERRANDS } from './errands/scoped-errands.js';
import type { TICKET_ERRANDS } from './errands/ticket-errands.js';
import type { FaultName } from './faults.js';
import type { NetworkConditions } from './simulated/network-conditions.js';

export type ErrandName =
  | keyof typeof ERRANDS
  | keyof typeof SCOPED_ERRANDS
  | keyof typeof SCATTERED_ERRANDS
  | keyof typeof PERMIT_ERRANDS
  | keyof typeof PLACE_ERRANDS
  | keyof typeof LATCH_ERRANDS
  | keyof typeof NEWEST_ERRANDS
  | keyof typeof TICKET_ERRANDS;

/** One kind of schedule. What it does not determine is chosen at random. */
export interface ScheduleKind {
  readonly errands: Readonly<Partial<Record<ErrandName, number>>>;
  /** What callers do after the faults. Default: they lock. */
  readonly afterwards?: Readonly<Partial<Record<ErrandName, number>>>;
  readonly fates: NetworkConditions['fates'];
  readonly unheard: number;
  /** How many milliseconds a caller waits for an answer, chosen between these two. Default: 60 to 200. */
  readonly commandTimeouts?: readonly [least: number, most: number];
  /** The faults, and how often each occurs at most. */
  readonly faults: readonly FaultName[];
  /** At most one of these faults occurs in a schedule. */
  readonly eitherOf: readonly FaultName[];
  readonly mostFaults: number;
  /** The clocks of the machines run at slightly different speeds. */
  readonly drift: boolean;
  /**
   * Leases are much longer than the whole schedule, so a lock that is still taken when all callers have left has no
   * holder.
   */
  readonly longLeases?: boolean;
  /** How long leases are that are renewed, chosen between these two. Default: 300 to 1,000 ms, or much longer. */
  readonly leases?: readonly [least: number, most: number];
  /** How long a place in line is kept that is not refreshed, chosen between these two. Default: 200 to 600 ms. */
  readonly waiterTimeouts?: readonly [least: number, most: number];
  /** How many permits there are at most. Default: 4. */
  readonly mostPermits?: number;
  /** The servers are always a cluster: each name is in a slot of its own, so several names are acquired one by one. */
  readonly scattered?: boolean;
  /** Processes have a thread that renews for so long while their event loop is blocked, in milliseconds. */
  readonly keepWhileBlocked?: number;
  /** Nothing ever goes wrong: no lease is lost, and a free lock goes to a waiting caller without delay. */
  readonly flawless: boolean;
  /** A free lock goes to a waiting caller without delay, although leases end. Default: as {@link flawless}. */
  readonly prompt?: boolean;
}

const EVERYTHING = {
  hold: 4,
  hurry: 3,
  tryOnce: 2,
  waitAWhile: 2,
  abort: 2,
  fixedLease: 2,
  extend: 1,
  several: 2,
  handle: 1,
  body: 2,
  reenter: 1,
  downgrade: 1,
  readAgain: 1,
  leak: 1,
  severalInside: 1,
  holdAtLeast: 1,
  block: 0.5,
  runs: 1,
  grandchild: 1,
  overdue: 0.5,
} as const;

const UNSTEADY = { refused: 0.02, lost: 0.03, unanswered: 0.03, resent: 0.02, late: 0.02, overtaken: 0.03 };

const PERMITS = {
  pool: 3,
  poolHurry: 2,
  poolLong: 0.5,
  poolTry: 2,
  poolDrain: 0.5,
  poolAbort: 1,
  seat: 3,
  seatTry: 2,
  seatLong: 0.5,
  seatFixed: 2,
  seatAbort: 1,
  gateMake: 1,
  gateCount: 3,
  gatePass: 4,
} as const;

/** A lock that n may hold, while some callers want another lock as well. */
const PLACES = {
  place: 4,
  placeHurry: 3,
  placeCrowd: 1,
  placeTry: 3,
  placeAbort: 2,
  placeFixed: 2,
  placeLong: 0.5,
  hold: 1,
} as const;

/** Tickets that pass from process to process, while other callers want the same locks. */
const TICKETS = { detach: 4, adopt: 6, hold: 2, hurry: 1, tryOnce: 1, body: 1 } as const;

const PERMITS_AFTERWARDS = { pool: 1, seat: 2, gateCount: 1, gatePass: 2 } as const;

/** Callers of whom only the newest waits, and few others. */
const NEWEST = { newest: 4, newestBurst: 3, newestLong: 1, besideNewest: 1 } as const;

/** Bodies that block the event loop for long, and others. */
const BLOCKING = {
  outlive: 2,
  hold: 3,
  hurry: 3,
  tryOnce: 2,
  waitAWhile: 2,
  abort: 1,
  extend: 1,
  body: 2,
  reenter: 1,
  holdAtLeast: 2,
  several: 1,
  place: 1,
  detach: 1,
  adopt: 2,
} as const;

/** Faults of the network and the server. */
const BREAKDOWNS = ['cut', 'disconnect', 'freeze', 'restart', 'forgetScripts'] as const;
/** Faults of processes. */
const DEATHS = ['crash', 'stall', 'shutDown'] as const;

/** A slow network, without faults. */
const CALM = { fates: {}, unheard: 0, faults: [], eitherOf: [], mostFaults: 0, drift: true } as const;

/**
 * Commands, answers and connections are lost or take too long, while leases are so long that they hide no leftovers.
 */
const LATE = {
  fates: { ...UNSTEADY, late: 0.05, twice: 0.05 },
  unheard: 0.1,
  faults: BREAKDOWNS,
  eitherOf: [],
  mostFaults: 3,
  drift: true,
  longLeases: true,
  flawless: false,
} as const;

/** Commands, answers, messages and connections get lost, and processes die and are suspended. */
const STORMY = {
  fates: UNSTEADY,
  unheard: 0.1,
  faults: [...BREAKDOWNS, ...DEATHS],
  eitherOf: ['suspend', 'setWallClock'],
  drift: true,
  flawless: false,
} as const;

export const KINDS = {
  /** A slow network, without faults. */
  steady: {
    errands: {
      ...EVERYTHING,
      several: 0,
      severalInside: 0,
      readAgain: 0,
      holdAtLeast: 0,
      block: 0,
      overdue: 0,
      fixedLease: 0,
    },
    ...CALM,
    flawless: true,
  },
  /** Several locks at once on a slow network, sometimes in a crowd. */
  several: {
    errands: { several: 5, severalInside: 2, hold: 2, hurry: 1, tryOnce: 1, holdAtLeast: 1, abort: 1, crowd: 0.05 },
    ...CALM,
    flawless: false,
  },
  /** Commands, answers, messages and connections get lost. */
  lossy: {
    errands: EVERYTHING,
    fates: UNSTEADY,
    unheard: 0.1,
    faults: BREAKDOWNS,
    eitherOf: [],
    mostFaults: 3,
    drift: true,
    flawless: false,
  },
  /** Processes die, are suspended, and have their clocks set. */
  frail: {
    errands: EVERYTHING,
    fates: {},
    unheard: 0,
    faults: DEATHS,
    eitherOf: ['suspend', 'setWallClock'],
    mostFaults: 4,
    drift: true,
    flawless: false,
  },
  /** All faults together. */
  storm: {
    errands: EVERYTHING,
    fates: UNSTEADY,
    unheard: 0.1,
    faults: [...BREAKDOWNS, ...DEATHS],
    eitherOf: [],
    mostFaults: 5,
    drift: true,
    flawless: false,
  },
  /** The server breaks its promises. Earlier grants prove nothing, but tokens continue to grow. */
  unreliable: {
    errands: { ...EVERYTHING, holdLong: 0.5 },
    fates: UNSTEADY,
    unheard: 0.1,
    faults: ['advanceServerClock', 'forceRelease', 'crash'],
    eitherOf: ['loseData', 'flush', 'failOver', 'setServerClockBack', 'loseDataAndTime'],
    mostFaults: 3,
    drift: false,
    flawless: false,
  },
  /** The server's data is deleted while tokens are reserved for many locks. Later tokens are still higher. */
  flushed: {
    errands: { busyNames: 1, tryBusyName: 12, hurry: 8, hold: 8, holdLong: 2 },
    fates: {},
    unheard: 0,
    faults: ['flush'],
    eitherOf: [],
    mostFaults: 4,
    drift: false,
    flawless: false,
  },
  /** The server cannot be reached for longer than most leases. Every holder notices when its lease ends. */
  cutOff: {
    errands: { keep: 4, extend: 2, holdLong: 2, seatLong: 4, hold: 1 },
    afterwards: { hold: 1, body: 1, seat: 1 },
    fates: { answeredLate: 0.2 },
    unheard: 0,
    commandTimeouts: [60, 1_200],
    faults: ['longCut'],
    eitherOf: [],
    mostFaults: 2,
    drift: true,
    flawless: false,
  },
  /** Semaphores and latches on a slow network. */
  permits: {
    errands: { ...PERMITS, seatFixed: 0 },
    afterwards: PERMITS_AFTERWARDS,
    ...CALM,
    flawless: true,
  },
  /** Semaphores and latches, while commands, answers, messages and connections get lost. */
  lossyPermits: {
    errands: { ...PERMITS, seatLong: 4 },
    afterwards: PERMITS_AFTERWARDS,
    // Answers that take as long as a lease. A process that counted the lease from them would rely on it for too long.
    fates: { ...UNSTEADY, answeredLate: 0.2 },
    unheard: 0.1,
    commandTimeouts: [60, 1_200],
    faults: BREAKDOWNS,
    eitherOf: [],
    mostFaults: 3,
    drift: true,
    flawless: false,
  },
  /** The same, while processes also die and are suspended. */
  stormyPermits: {
    errands: PERMITS,
    afterwards: PERMITS_AFTERWARDS,
    ...STORMY,
    mostFaults: 5,
  },
  /**
   * Permits with leases and latches on a server that breaks its promises. Permits that are only counted could not
   * recover from that.
   */
  unreliablePermits: {
    errands: { ...PERMITS, pool: 0, poolHurry: 0, poolLong: 0, poolTry: 0, poolDrain: 0, poolAbort: 0 },
    afterwards: { ...PERMITS_AFTERWARDS, pool: 0 },
    fates: UNSTEADY,
    unheard: 0.1,
    faults: ['advanceServerClock', 'crash'],
    eitherOf: ['loseData', 'failOver', 'setServerClockBack', 'loseDataAndTime'],
    mostFaults: 3,
    drift: false,
    flawless: false,
  },
  /** Requests that arrive after their callers have left. */
  lateRequests: {
    errands: {
      ...EVERYTHING,
      fixedLease: 0,
      extend: 0,
      readAgain: 0,
      holdAtLeast: 0,
      block: 0,
      downgrade: 2,
      abort: 4,
    },
    ...LATE,
  },
  /** The same for permits. */
  latePermitRequests: {
    errands: { ...PERMITS, seatFixed: 0, seatAbort: 3, poolAbort: 3 },
    afterwards: PERMITS_AFTERWARDS,
    ...LATE,
  },
  /** Locks that are detached in one process and adopted in another one, on a slow network. */
  tickets: {
    errands: TICKETS,
    ...CALM,
    flawless: true,
  },
  /** The same while commands, answers, messages, connections and processes get lost. */
  stormyTickets: {
    errands: TICKETS,
    ...STORMY,
    mostFaults: 4,
  },
  /**
   * Several locks of any type in different slots of a cluster, while releases and other requests arrive late or not at
   * all.
   */
  scattered: {
    errands: { someOf: 6, oneOf: 5, tryOneOf: 1, someInside: 2, reenter: 1, downgrade: 1 },
    afterwards: { someOf: 2, oneOf: 1 },
    fates: { ...UNSTEADY, overtaken: 0.15 },
    unheard: 0.05,
    faults: ['cut', 'disconnect', 'freeze'],
    eitherOf: [],
    mostFaults: 2,
    drift: true,
    longLeases: true,
    scattered: true,
    flawless: false,
  },
  /** Callers that want two locks in different slots, while others keep each of them busy. */
  besieged: {
    errands: { besiege: 1, tryOneOf: 8 },
    ...CALM,
    scattered: true,
    flawless: false,
  },
  /** Leases are longer than claims, so that processes begin as soon as a message grants them a lock. */
  granted: {
    errands: { hold: 5, hurry: 3, waitAWhile: 2, abort: 1, tryOnce: 1, holdLong: 0.3 },
    fates: UNSTEADY,
    unheard: 0.05,
    faults: [...BREAKDOWNS, ...DEATHS],
    eitherOf: [],
    mostFaults: 3,
    drift: true,
    leases: [1_000, 2_500],
    flawless: false,
  },
  /** A lock that n may hold, on a slow network. */
  places: {
    errands: { ...PLACES, placeFixed: 0, placeLong: 0 },
    ...CALM,
    flawless: true,
  },
  /** The same, while commands, answers, messages, connections and processes get lost. */
  stormyPlaces: {
    errands: PLACES,
    afterwards: { place: 3, placeCrowd: 1, hold: 1 },
    ...STORMY,
    mostFaults: 5,
  },
  /** The same with requests that arrive after their callers have left. */
  latePlaces: {
    errands: { ...PLACES, placeFixed: 0, placeLong: 0, placeAbort: 4 },
    ...LATE,
  },
  /** Fixed leases that end while others hold the same lock or semaphore, on a slow network. */
  overdue: {
    errands: { placeOverdue: 2, placesOverdue: 3, placeLong: 1, placeHurry: 4, seatOverdue: 2, seatLong: 1, seat: 4 },
    afterwards: { place: 2, seat: 1 },
    ...CALM,
    waiterTimeouts: [1_200, 2_400],
    mostPermits: 8,
    prompt: true,
    flawless: false,
  },
  /** Renewals that arrive after the locks were released. */
  lateRenewals: {
    errands: { prolong: 6, hold: 2, hurry: 1, place: 2 },
    afterwards: { hold: 2, place: 1 },
    ...LATE,
  },
  /** The server forgets its scripts again and again, which nobody notices. */
  forgotten: {
    errands: { together: 4, hold: 2, hurry: 1, tryOnce: 1 },
    ...CALM,
    faults: ['forgetScripts'],
    mostFaults: 8,
    flawless: true,
  },
  /** A lock for which only the newest caller waits, on a slow network. */
  newest: {
    errands: NEWEST,
    afterwards: NEWEST,
    ...CALM,
    flawless: true,
  },
  /** The same, while commands, answers, messages, connections and processes get lost. */
  stormyNewest: {
    errands: NEWEST,
    afterwards: NEWEST,
    ...STORMY,
    mostFaults: 4,
  },
  /** Event loops are blocked for half a lease to ten leases, inside locks and outside. */
  blocked: {
    errands: { ...BLOCKING, extend: 0 },
    ...CALM,
    leases: [1_500, 2_000],
    faults: ['blockLoop'],
    mostFaults: 2,
    keepWhileBlocked: 60_000,
    flawless: false,
  },
  /** The same for longer than the thread renews, while threads stall, and commands, connections and processes get lost. */
  stormyBlocked: {
    errands: BLOCKING,
    ...STORMY,
    leases: [300, 1_000],
    faults: ['blockLoop', 'stallThread', 'cutBoth', 'freeze', 'disconnect', 'crash', 'shutDown'],
    eitherOf: ['suspend'],
    mostFaults: 5,
    keepWhileBlocked: 2_000,
  },
} as const satisfies Record<string, ScheduleKind>;

export type KindName = keyof typeof KINDS;

export const KIND_NAMES = Object.keys(KINDS) as KindName[];

/** Kinds whose seeds are above {@link LATER}, so that smaller seeds mean what they meant before these kinds were added. */
const LATER_KINDS: readonly KindName[] = [
  'places',
  'stormyPlaces',
  'latePlaces',
  'overdue',
  'lateRenewals',
  'forgotten',
  'newest',
  'stormyNewest',
];
/** The same above {@link LATEST}. */
const LATEST_KINDS: readonly KindName[] = ['blocked', 'stormyBlocked'];
/** Kinds that no seed determines, because only traces need them. */
const TRACED_KINDS: readonly KindName[] = ['besieged', 'granted'];
const FORMER_KINDS = KIND_NAMES.filter((name) => ![...LATER_KINDS, ...LATEST_KINDS, ...TRACED_KINDS].includes(name));
export const LATER = 1_000_000;
export const LATEST = 2_000_000;

/** The kind of schedule that a seed determines. */
export function kindOf(seed: number): KindName {
  const names = seed > LATEST ? LATEST_KINDS : seed > LATER ? LATER_KINDS : FORMER_KINDS;
  return names[seed % names.length];
}
