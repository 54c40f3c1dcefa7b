import type { KindName } from '../../chaos/simulation/kinds.js';
import { simulate } from '../../chaos/simulation/run-schedules.js';
import { SimulationTrace } from '../../chaos/simulation/simulation-trace.js';
import { type Damage, OF_BELIEF, OF_GRANT } from './damage.js';
import type { QuorumKind } from './quorum-schedule.js';
import type { Step } from './steps.js';
import type { AnyTrace } from './tla-module.js';
import { tracedLocks, traceOfLock } from './trace-of-lock.js';
import { traceOfQuorum } from './trace-of-quorum.js';
import { tracesOfSeveral } from './trace-of-several.js';
import { sharedLocks, traceOfShared } from './trace-of-shared.js';

/** Traces of one kind of lock, and what they are checked against. */
export interface Family {
  readonly name: string;
  /** The module in this folder, which has a configuration of the same name. */
  readonly module: string;
  /** The modules that it extends: in this folder, and those of the specification. */
  readonly extended: readonly string[];
  readonly kinds: readonly (KindName | QuorumKind)[];
  readonly tracesOfAKind: number;
  readonly mostSteps: number;
  /** How many damaged ones are made of them. */
  readonly damaged: number;
  readonly damages: readonly Damage[];
  /** What must occur in some of the traces, because they would otherwise prove little: in how many at least. */
  readonly occurs: readonly { readonly what: string; readonly least: number; readonly in: (step: Step) => boolean }[];
  /** The traces with the most of these steps are taken first. */
  readonly preferred: (step: Step) => boolean;
  traces(kind: KindName | QuorumKind, seed: number): Promise<readonly AnyTrace[]>;
}

/** The traces of one schedule of the simulation. */
function simulated(
  traces: (trace: SimulationTrace, name: (key: string) => string) => readonly AnyTrace[],
  { knowsGrants = false } = {},
): Family['traces'] {
  return async (kind, seed) => {
    const trace = new SimulationTrace(knowsGrants);
    await simulate(seed, { kind: kind as KindName, trace });
    trace.end();
    return traces(trace, (key) => `${kind} ${seed}, ${key}`);
  };
}

const ofLocks = simulated(
  (trace, name) => tracedLocks(trace).flatMap((key) => traceOfLock(trace, key, name(key)) ?? []),
  { knowsGrants: true },
);

/** @param queues a kind of which only traces with a line are taken, because they would otherwise be too few */
function shared(type: 'read' | 'permits', queues: KindName): Family['traces'] {
  const all = simulated((trace, name) =>
    sharedLocks(trace, type).flatMap((key) => traceOfShared(trace, key, name(key)) ?? []),
  );
  return async (kind, seed) => {
    const traces = await all(kind, seed);
    return kind === queues ? traces.filter(({ steps }) => steps.some(entersLine)) : traces;
  };
}

const COMMON: readonly Damage[] = ['dropped', 'doubled', 'swapped', 'time changed'];

const isGrant = ({ e }: Step) => e === 'grant';
const isBelief = ({ e }: Step) => e === 'believe';
const isMishap = ({ e }: Step) => ['lost', 'late', 'resend', 'lose', 'data lost'].includes(e);
const entersLine = ({ e, line }: Step) => e === 'execute' && (line as readonly number[]).length > 0;

const MISHAPS = { what: 'a loss, an expiry or a re-sent request', least: 20, in: isMishap };

export const FAMILIES: readonly Family[] = [
  {
    name: 'locks',
    module: 'Trace',
    extended: ['../LeaseServer', '../Lease', '../Tokens', '../LineServer', '../Line'],
    kinds: ['steady', 'lossy', 'storm', 'lateRequests', 'flushed', 'cutOff', 'unreliable', 'granted'],
    tracesOfAKind: 20,
    mostSteps: 400,
    damaged: 280,
    damages: [...COMMON, 'token changed', 'place changed', ...OF_BELIEF, ...OF_GRANT, 'told another'],
    occurs: [
      MISHAPS,
      { what: 'a grant to a place in line', least: 20, in: isGrant },
      { what: 'a grant that a process believes', least: 20, in: isBelief },
    ],
    preferred: (step) => isGrant(step) || isBelief(step) || step.e === 'tell',
    traces: async (kind, seed) => {
      const traces = await ofLocks(kind, seed);
      return kind === 'granted' ? traces.filter(({ steps }) => steps.some(isBelief)) : traces;
    },
  },
  {
    name: 'read/write locks',
    module: 'TraceReadWrite',
    extended: ['../ReadWriteServer', '../ReadWrite', 'TraceRequests'],
    kinds: ['steady', 'lossy', 'storm', 'lateRequests', 'scattered'],
    tracesOfAKind: 12,
    mostSteps: 400,
    damaged: 200,
    damages: [...COMMON, 'owner changed', 'answer changed', 'holder changed'],
    occurs: [
      MISHAPS,
      { what: 'a line', least: 30, in: entersLine },
      { what: 'several readers', least: 15, in: ({ mode, holders }) => mode === 'read' && (holders as []).length > 1 },
    ],
    preferred: entersLine,
    traces: shared('read', 'steady'),
  },
  {
    name: 'locks that n may hold',
    module: 'TracePermits',
    extended: ['../Permits', '../LineServer', 'TraceRequests'],
    kinds: ['places', 'stormyPlaces', 'latePlaces'],
    tracesOfAKind: 10,
    mostSteps: 300,
    damaged: 100,
    damages: [...COMMON, 'owner changed', 'answer changed', 'holder changed'],
    occurs: [
      // In `places`, nothing is lost.
      { ...MISHAPS, least: 15 },
      { what: 'a line', least: 10, in: entersLine },
      { what: 'several holders', least: 12, in: ({ holders }) => ((holders as []) ?? []).length > 1 },
    ],
    preferred: entersLine,
    traces: shared('permits', 'places'),
  },
  {
    name: 'several locks',
    module: 'TraceSeveral',
    extended: ['../Several', 'TraceRequests'],
    kinds: ['lossy', 'lateRequests', 'scattered', 'besieged'],
    tracesOfAKind: 7,
    mostSteps: 350,
    damaged: 90,
    damages: [...COMMON, 'owner changed', 'answer changed', 'holder changed', 'target changed', 'call changed'],
    occurs: [
      { ...MISHAPS, least: 15 },
      { what: 'a wait for one of several', least: 15, in: ({ e }) => e === 'waits' },
      { what: 'a call that holds some and waits', least: 2, in: ({ e }) => e === 'over' },
    ],
    preferred: ({ e }) => e === 'gives' || e === 'over',
    traces: simulated(tracesOfSeveral),
  },
  {
    name: 'locks of a quorum',
    module: 'TraceQuorum',
    extended: ['../Quorum'],
    kinds: ['contended', 'unsteady', 'mortal', 'forgetful'],
    tracesOfAKind: 8,
    mostSteps: 400,
    damaged: 90,
    damages: [...COMMON, 'token changed', 'owner changed', 'answer changed', 'holder changed', 'target changed'],
    occurs: [
      { ...MISHAPS, least: 10 },
      { what: 'a renewal', least: 5, in: ({ e }) => e === 'confirm' },
      { what: 'a token that nodes had to agree on', least: 8, in: ({ kind }) => kind === 'raise' },
      { what: 'a node that forgot', least: 5, in: ({ e }) => e === 'forget' },
    ],
    preferred: ({ e }) => e === 'confirm',
    traces: async (kind, seed) =>
      [await traceOfQuorum(seed, kind as QuorumKind, `${kind} ${seed}`)].flatMap((trace) => trace ?? []),
  },
];
