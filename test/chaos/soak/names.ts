export const PROCESSES = 6;

/** What is locked: 500 names of these kinds. */
export const NAMES = {
  plain: 100,
  fair: 60,
  page: 60,
  ledger: 40,
  several: 60,
  place: 50,
  newest: 30,
  ticket: 20,
  job: 30,
  flight: 30,
  seat: 8,
  pool: 8,
  gate: 4,
} as const;

export type NameKind = keyof typeof NAMES;

/** How many may hold a lock of the kind `place`, and how many permits semaphores have. */
export const PLACES = 3;
export const PERMITS = 4;
/** How many steps open a latch. */
export const STEPS = 2;

/** The number of those names that every second call is for, so that callers compete. */
export const HOT = 3;

/** @param chapter part of the names of objects that no lease ends, so that each chapter begins with new ones */
export function nameOf(kind: NameKind, number: number, chapter: number): string {
  return kind === 'pool' || kind === 'gate' ? `${kind}:${chapter}:${number}` : `${kind}:${number}`;
}

/** How many may hold each of these, by name. */
export function permitsOf(chapter: number): ReadonlyMap<string, number> {
  const all = (kind: NameKind, total: number) =>
    Array.from({ length: NAMES[kind] }, (_, n) => [nameOf(kind, n + 1, chapter), total] as const);
  return new Map([...all('place', PLACES), ...all('seat', PERMITS), ...all('pool', PERMITS)]);
}
