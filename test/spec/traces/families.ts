import type { KindName } from '../../chaos/simulation/kinds.js';
import type { SimulationTrace } from '../../chaos/simulation/simulation-trace.js';
import type { Damage } from './damage.js';
import type { Step } from './steps.js';
import type { AnyTrace } from './tla-module.js';
import { tracedLocks, traceOfLock } from './trace-of-lock.js';
import { sharedLocks, traceOfShared } from './trace-of-shared.js';

/** Traces of one kind of lock, and what they are checked against. */
export interface Family {
  readonly name: string;
  /** The module in this folder, which has a configuration of the same name. */
  readonly module: string;
  /** The modules that it extends: in this folder, and those of the specification. */
  readonly extended: readonly string[];
  readonly kinds: readonly KindName[];
  readonly tracesOfAKind: number;
  readonly mostSteps: number;
  /** How many damaged ones are made of them. */
  readonly damaged: number;
  readonly damages: readonly Damage[];
  /** What must occur in some of the traces, because they would otherwise prove little: in how many at least. */
  readonly occurs: readonly { readonly what: string; readonly least: number; readonly in: (step: Step) => boolean }[];
  /** The traces with the most of these steps are taken first. */
  readonly preferred: (step: Step) => boolean;
  traces(trace: SimulationTrace, name: (key: string) => string): readonly AnyTrace[];
}

const COMMON: readonly Damage[] = ['dropped', 'doubled', 'swapped', 'time changed'];

const isGrant = ({ e }: Step) => e === 'grant';
const isMishap = ({ e }: Step) => ['lost', 'late', 'resend', 'lose', 'data lost'].includes(e);
const entersLine = ({ e, line }: Step) => e === 'execute' && (line as readonly number[]).length > 0;

const MISHAPS = { what: 'a loss, an expiry or a re-sent request', least: 20, in: isMishap };

export const FAMILIES: readonly Family[] = [
  {
    name: 'locks',
    module: 'Trace',
    extended: ['../LeaseServer', '../Lease', '../Tokens', '../LineServer'],
    kinds: ['steady', 'lossy', 'storm', 'lateRequests', 'flushed', 'cutOff', 'unreliable'],
    tracesOfAKind: 20,
    mostSteps: 400,
    damaged: 200,
    damages: [...COMMON, 'token changed', 'place changed'],
    occurs: [MISHAPS, { what: 'a grant to a place in line', least: 20, in: isGrant }],
    preferred: isGrant,
    traces: (trace, name) => tracedLocks(trace).flatMap((key) => traceOfLock(trace, key, name(key)) ?? []),
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
      { what: 'several readers', least: 20, in: ({ mode, holders }) => mode === 'read' && (holders as []).length > 1 },
    ],
    preferred: entersLine,
    traces: (trace, name) => sharedLocks(trace, 'read').flatMap((key) => traceOfShared(trace, key, name(key)) ?? []),
  },
  {
    name: 'locks that n may hold',
    module: 'TracePermits',
    extended: ['../Permits', 'TraceRequests'],
    kinds: ['places', 'stormyPlaces', 'latePlaces'],
    tracesOfAKind: 10,
    mostSteps: 300,
    damaged: 100,
    damages: [...COMMON, 'owner changed', 'answer changed', 'holder changed'],
    occurs: [
      MISHAPS,
      { what: 'a line', least: 10, in: entersLine },
      { what: 'several holders', least: 15, in: ({ holders }) => ((holders as []) ?? []).length > 1 },
    ],
    preferred: entersLine,
    traces: (trace, name) => sharedLocks(trace, 'permits').flatMap((key) => traceOfShared(trace, key, name(key)) ?? []),
  },
];
