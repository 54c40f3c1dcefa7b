import type { SeededRandom } from '../../support/seeded-random.js';
import type { Member } from './member.js';
import type { Simulation } from './simulation.js';

/** Something that goes wrong at one moment of a simulation. */
export type Misfortune = (simulation: Simulation, member: Member, chance: SeededRandom) => void;

/** Longer than any lease or command time-out: what was under way at the time of an upset has come in. */
const UPSET = 1_100;

/** Longer than any lease, extended ones included, and what a body may block the event loop for. */
const LONGEST_BELIEF = 2_900;

/** The process is killed; another one may take its place. */
const crash: Misfortune = (simulation, member, chance) => {
  if (simulation.alive.length < 2) return;
  member.crash();
  if (chance.chance(0.5)) simulation.addMember();
};

const stall: Misfortune = (_simulation, { process }, chance) => process.block(chance.between(1, 1_500));

const suspend: Misfortune = (_simulation, { process }, chance) => process.suspend(chance.between(1, 3_000));

const setWallClock: Misfortune = (_simulation, { process }, chance) =>
  process.setWallClock(chance.pick([-3_600_000, -2_000, -500, 300, 1_500, 3_600_000]) * chance.next());

const cut: Misfortune = (_simulation, { link }, chance) => link.cut(chance.between(1, 1_500), chance.chance(0.5));

const disconnect: Misfortune = (_simulation, { link }) => link.disconnected();

const freeze: Misfortune = ({ server }, _member, chance) => server.freeze(chance.between(1, 1_000));

const restart: Misfortune = ({ server }, _member, chance) => server.restart(chance.between(1, 500), true);

const loseData: Misfortune = (simulation, _member, chance) => {
  const { server, time } = simulation;
  // Until its clock shows what it has shown before, tokens grow for those alone that have seen the last ones.
  simulation.upset(
    'the server lost its data',
    Math.max(UPSET, server.behind + 100),
    undefined,
    time.now + LONGEST_BELIEF,
  );
  simulation.server.restart(chance.between(20, 500), false);
};

/** Restored from an old snapshot of the whole machine, so to speak: neither its data nor its clock can be believed. */
const loseDataAndTime: Misfortune = (simulation, member, chance) => {
  simulation.server.setClock(-chance.between(1, 1_000));
  loseData(simulation, member, chance);
};

const setServerBack: Misfortune = ({ server }, _member, chance) => server.setClock(-chance.between(1, 1_000));

const setServerForth: Misfortune = (simulation, _member, chance) => {
  simulation.upset("the server's clock was set forth", UPSET);
  simulation.server.setClock(chance.between(1, 1_000));
};

const forceRelease: Misfortune = (simulation, member, chance) => {
  const name = chance.pick(['stock', 'queue', 'ledger', 'page']);
  if (member.closing) return;
  simulation.upset('force-release', UPSET, name);
  member.locks.forceRelease(name).catch(() => {});
};

const shutDown: Misfortune = (simulation, member) => {
  if (simulation.alive.filter(({ closing }) => !closing).length > 1) void member.close();
};

export const MISFORTUNES = {
  crash,
  stall,
  suspend,
  setWallClock,
  cut,
  disconnect,
  freeze,
  restart,
  loseData,
  loseDataAndTime,
  setServerBack,
  setServerForth,
  forceRelease,
  shutDown,
};

export type MisfortuneName = keyof typeof MISFORTUNES;
