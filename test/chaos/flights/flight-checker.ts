import type { FlightRecord } from './flight-history.js';

export interface FlightExpectations {
  /** Every call is answered within this many milliseconds, unless its process is dead. */
  readonly answeredWithin: number;
  /**
   * A result that is stored later than this many milliseconds after the runner had its answer, or died, goes only to
   * those who asked before.
   */
  readonly storedWithin: number;
  /** By how much the age of a result may be misjudged, in milliseconds. It is larger if the server's clock is set. */
  readonly ageSlack: number;
}

export interface FlightViolation {
  readonly rule:
    | 'one run at a time'
    | 'answered'
    | 'a real run'
    | 'stored by the holder'
    | 'not older than the question'
    | 'not older than keepFor'
    | 'not forgotten';
  readonly message: string;
}

interface Run {
  readonly run: string;
  readonly name: string;
  readonly process: string;
  readonly began: number;
  /** When its lease was last seen to be held. */
  held: number;
  /** When its process got the answer or died. */
  ended: number;
}

interface Call {
  readonly call: string;
  readonly name: string;
  readonly process: string;
  readonly keepFor: number;
  readonly asked: number;
}

/**
 * Checks the promises of single flights. Each rule reports only what is certainly wrong: while a message was under way,
 * both orders count as possible.
 *
 * - one run at a time: no run began while the lease of another one of the same name was held;
 * - answered: every call has a result or an error in time;
 * - a real run: a result is that of a run of this name;
 * - not older than the question: without keepFor, the run had not ended when the caller asked, or the caller ran
 *   itself;
 * - not older than keepFor: the run had ended at most that long before the question;
 * - not forgotten: the run did not begin before a forgetResult() that had ended before the question.
 */
export function checkFlights(records: readonly FlightRecord[], expectations: FlightExpectations): FlightViolation[] {
  const digest = digestOf(records);
  const { runs, calls, deaths } = digest;
  return [
    ...overlaps(digest),
    ...[...calls.values()].flatMap((call) => checkAnswer(call, digest, runs, deaths, expectations)),
  ];
}

/**
 * Counts the calls that got the result of their own run, that of another run, or an error, because a check of nothing
 * would prove nothing.
 */
export function countFlights(records: readonly FlightRecord[]): {
  ran: number;
  shared: number;
  failed: number;
  forgot: number;
} {
  const counts = { ran: 0, shared: 0, failed: 0, forgot: 0 };
  for (const record of records) {
    if (record.kind === 'forgot') counts.forgot++;
    if (record.kind !== 'answered') continue;
    if (record.run === undefined) counts.failed++;
    else if (record.run === record.call) counts.ran++;
    else counts.shared++;
  }
  return counts;
}

interface Answer {
  readonly at: number;
  readonly run?: string;
}

interface Digest {
  readonly runs: ReadonlyMap<string, Run>;
  readonly calls: ReadonlyMap<string, Call>;
  readonly answers: ReadonlyMap<string, Answer>;
  readonly deaths: ReadonlyMap<string, number>;
  readonly losses: readonly number[];
  readonly forgets: ReadonlyMap<string, readonly { readonly asked: number; readonly done: number }[]>;
  readonly end: number;
}

function digestOf(records: readonly FlightRecord[]): Digest {
  const runs = new Map<string, Run>();
  const calls = new Map<string, Call>();
  const answers = new Map<string, Answer>();
  const deaths = new Map<string, number>();
  const losses: number[] = [];
  const forgetting = new Map<string, { readonly name: string; readonly at: number }>();
  const forgets = new Map<string, { asked: number; done: number }[]>();
  let end = 0;
  for (const record of [...records].sort((one, other) => one.at - other.at)) {
    const { at, process } = record;
    end = at;
    if (record.kind === 'asked') calls.set(record.call, { ...record, asked: at });
    else if (record.kind === 'answered') answers.set(record.call, record);
    else if (record.kind === 'crashed') deaths.set(process, at);
    else if (record.kind === 'data lost') losses.push(at);
    else if (record.kind === 'forgetting') forgetting.set(record.call, { name: record.name, at });
    else if (record.kind === 'forgot') {
      const { name, at: asked } = forgetting.get(record.call) as { name: string; at: number };
      forgets.set(name, [...(forgets.get(name) ?? []), { asked, done: at }]);
    } else if (record.kind === 'began')
      runs.set(record.run, { ...record, began: at, held: at, ended: Number.POSITIVE_INFINITY });
    else (runs.get(record.run) as Run).held = at;
  }
  for (const run of runs.values()) run.ended = answers.get(run.run)?.at ?? deaths.get(run.process) ?? run.ended;
  return { runs, calls, answers, deaths, losses, forgets, end };
}

function overlaps({ runs, losses }: Digest): FlightViolation[] {
  const byName = new Map<string, Run[]>();
  for (const run of runs.values()) byName.set(run.name, [...(byName.get(run.name) ?? []), run]);
  return [...byName.values()].flatMap((ofName) => {
    const inOrder = ofName.sort((one, other) => one.began - other.began);
    let longest = inOrder[0];
    return inOrder.slice(1).flatMap((run): FlightViolation[] => {
      const earlier = longest;
      if (run.held > longest.held) longest = run;
      const isLost = losses.some((loss) => earlier.began < loss);
      if (earlier.held <= run.began || isLost) return [];
      const message = `${run.name}: ${run.run} began at ${ms(run.began)}, and the lease of ${earlier.run} was held until ${ms(earlier.held)}`;
      return [{ rule: 'one run at a time', message }];
    });
  });
}

function checkAnswer(
  { call, name, process, keepFor, asked }: Call,
  { answers, forgets, end }: Digest,
  runs: ReadonlyMap<string, Run>,
  deaths: ReadonlyMap<string, number>,
  { answeredWithin, storedWithin, ageSlack }: FlightExpectations,
): FlightViolation[] {
  const answer = answers.get(call);
  const waited = (answer?.at ?? deaths.get(process) ?? end) - asked;
  if ((answer === undefined && !deaths.has(process)) || waited > answeredWithin)
    return [{ rule: 'answered', message: `${name}: ${call} asked at ${ms(asked)}, and waited for ${ms(waited)}` }];
  if (answer?.run === undefined || answer.run === call) return [];
  const run = runs.get(answer.run);
  const what = `${name}: ${call} asked at ${ms(asked)} with keepFor ${keepFor}, and got the result of ${answer.run}`;
  if (run === undefined || run.name !== name)
    return [{ rule: 'a real run', message: `${what}, which is no run of this name` }];
  const about = `${what}, which began at ${ms(run.began)} and ended at ${ms(run.ended)}`;
  const found: FlightViolation[] = [];
  const age = asked - run.ended - storedWithin;
  if (keepFor === 0 && age > 0) found.push({ rule: 'not older than the question', message: about });
  if (keepFor > 0 && age > keepFor + ageSlack) found.push({ rule: 'not older than keepFor', message: about });
  const forgotten = forgets.get(name)?.find((forget) => run.began < forget.asked && forget.done < asked);
  if (forgotten !== undefined)
    found.push({
      rule: 'not forgotten',
      message: `${about}; forgotten from ${ms(forgotten.asked)} to ${ms(forgotten.done)}`,
    });
  return found;
}

const ms = (time: number) => `${time.toFixed(1)} ms`;
