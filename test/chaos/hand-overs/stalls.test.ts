import { printed } from '../../benchmark/report/table.js';
import { LONG } from '../faults/fault-run.js';
import { FAULTS, isPossible, LEASE, MOMENTS, type Moment, type Outcome, type Play, play } from './aimed-play.js';

/** Plays at once, each with a server of its own. They spend nearly all of their time waiting. */
const AT_ONCE = 12;

/** In leases. A stall of the first kind loses nothing: the renewal is due after a third of the lease, and repeated. */
const HARMLESS = LONG === 1 ? [0.5] : [0.3, 0.5];
const HARMFUL = LONG === 1 ? [] : [1.2, 3];
/** In ms. The second kind needs a renewal. */
const BODIES = [2, 1.3 * LEASE];
const TYPES = LONG === 1 ? (['reentrant'] as const) : (['reentrant', 'fenced', 'permits'] as const);
/** For figures: STALL_ROUNDS=12 npm run suite -- chaos hand-overs/stalls */
const ROUNDS = Number(process.env.STALL_ROUNDS ?? Math.ceil(LONG / 3));

/** What happened in all rounds of a play. */
interface Row {
  readonly play: Omit<Play, 'way'>;
  readonly handedOver: readonly Outcome[];
  readonly acquired: readonly Outcome[];
}

const rows: Row[] = [];

/** A change of hands has moments at which an acquisition of a free lock has its own. The outcomes are compared. */
describe('a lock that changes hands while something stands still', () => {
  const moments = Object.keys(MOMENTS) as Moment[];

  beforeAll(
    async () => {
      const plays = TYPES.flatMap((type) =>
        FAULTS.flatMap((fault) =>
          moments
            .filter((moment) => isPossible(fault, moment))
            .flatMap((moment) =>
              [...HARMLESS, ...HARMFUL].flatMap((share) =>
                BODIES.filter((body) => moment !== 'running' || body > LEASE / 3).map((body) => {
                  const terms = type === 'permits' ? { permits: 1 } : { type };
                  const commandTimeout = body < LEASE ? 2_000 : 400;
                  return { fault, moment, stall: share * LEASE, body, terms, commandTimeout };
                }),
              ),
            ),
        ),
      );
      for (const one of plays) rows.push({ play: one, handedOver: [], acquired: [] });
      const tasks = rows.flatMap((row) =>
        Array.from({ length: ROUNDS }).flatMap(() => [
          async () => void (row.handedOver as Outcome[]).push(await play({ ...row.play, way: 'handed over' })),
          async () => void (row.acquired as Outcome[]).push(await play({ ...row.play, way: 'acquired' })),
        ]),
      );
      const work = async () => {
        for (let task = tasks.shift(); task !== undefined; task = tasks.shift()) await task();
      };
      await Promise.all(Array.from({ length: AT_ONCE }, work));
    },
    120_000 * LONG * LONG,
  );

  afterAll(() => {
    const cells = (outcomes: readonly Outcome[]) => {
      const results = [...new Set(outcomes.map(({ result }) => result))].map(
        (result) => `${result} ${outcomes.filter((outcome) => outcome.result === result).length}`,
      );
      const together = outcomes.filter((outcome) => outcome.together > 0);
      const began = outcomes.map((outcome) => outcome.began.toFixed(0));
      return [results.join(', '), String(together.length), began.join(' ')];
    };
    const printable = {
      title: `What stands still while a lock changes hands; leases of ${LEASE} ms, ${ROUNDS} of each`,
      columns: ['', 'lock', 'stall', 'body', 'handed over', 'two in', 'began', 'acquired', 'two in', 'began'],
      rows: rows.map(({ play: { fault, moment, stall, body, terms }, handedOver, acquired }) => [
        `${fault} ${MOMENTS[moment]}`,
        terms.type ?? 'permits',
        `${stall / LEASE} leases`,
        `${body} ms`,
        ...cells(handedOver),
        ...cells(acquired),
      ]),
      notes: [
        'began: ms from the stall to the beginning of the body. two in: bodies that were inside with the next one.',
      ],
    };
    process.stdout.write(`\n${printed(printable)}\n`);
  });

  const told = ({ play: one }: Row, way: string, outcome: Outcome) =>
    `${way} ${JSON.stringify({ ...one, ...outcome })}`;
  const every = (bad: (row: Row, outcome: Outcome) => boolean) =>
    rows.flatMap((row) => [
      ...row.handedOver.filter((one) => bad(row, one)).map((one) => told(row, 'handed over', one)),
      ...row.acquired.filter((one) => bad(row, one)).map((one) => told(row, 'acquired', one)),
    ]);

  it('is never believed to be held by two', () => {
    expect(every((_, { bothBelieved }) => bothBelieved)).toEqual([]);
  });

  it('is not reported as lost to a body that ended within its lease', () => {
    expect(every((_, { result, endedWithinLease }) => endedWithinLease && result === 'LockLostError')).toEqual([]);
  });

  it('is kept, with one inside, where the stall is shorter than what is left of the lease', () => {
    const isHarmless = ({ play: { stall } }: Row) => HARMLESS.some((share) => share * LEASE === stall);
    expect(every((row, { result, together }) => isHarmless(row) && (result !== 'ended' || together > 0))).toEqual([]);
  });

  it('has the same outcome whether it is handed over or acquired', () => {
    const results = (outcomes: readonly Outcome[]) => [...new Set(outcomes.map(({ result }) => result))].sort().join();
    const different = rows.filter(({ handedOver, acquired }) => results(handedOver) !== results(acquired));
    expect(
      different.map(({ play: one, handedOver, acquired }) => [one, results(handedOver), results(acquired)]),
    ).toEqual([]);
  });
});
