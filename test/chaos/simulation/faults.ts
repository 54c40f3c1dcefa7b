import type { SeededRandom } from '../../support/seeded-random.js';
import type { Member } from './member.js';
import type { Simulation } from './simulation.js';

/** Something that goes wrong at one moment of a simulation. */
export type Fault = (simulation: Simulation, member: Member, chance: SeededRandom) => void;

/**
 * In milliseconds. It is longer than any lease or command time-out, so that everything that was under way at the time
 * of an upset has arrived.
 */
const UPSET = 1_100;

/**
 * In milliseconds. It is longer than any lease, including extended ones, plus the time for which a body may block the
 * event loop.
 */
const LONGEST_BELIEF = 2_900;

/** Half a lease to ten leases; a short one is more likely than a long one. */
export function longBlock(lease: number, chance: SeededRandom): number {
  return lease * 0.5 * 20 ** chance.next();
}

function announceLoss(simulation: Simulation): void {
  const { servers, time } = simulation;
  const behind = Math.max(...servers.map((server) => server.behind));
  // Until its clock has caught up, tokens grow only for processes that have seen the last ones.
  simulation.upset('the servers lost their data', Math.max(UPSET, behind + 100), {
    forgetsTokens: behind > 0,
    reportedBy: time.now + LONGEST_BELIEF,
  });
}

/** Kills the process. Another one may take its place. */
const crash: Fault = (simulation, member, chance) => {
  if (simulation.alive.length < 2) return;
  member.crash();
  if (chance.chance(0.5)) simulation.addMember();
};

const stall: Fault = (_simulation, { process }, chance) => process.block(chance.between(1, 1_500));

/** Stalls the thread that renews while the event loop is blocked. The event loop itself keeps running. */
const stallThread: Fault = (_simulation, { thread }, chance) => thread?.block(chance.between(1, 1_500));

/** Blocks the event loop for half a lease to ten leases. */
const blockLoop: Fault = (_simulation, { process, locks }, chance) =>
  process.block(longBlock(locks.engine.settings.watchdogTimeout, chance));

/** Also the connection of the thread. */
const cutBoth: Fault = (_simulation, { cables }, chance) => {
  const duration = chance.between(1, 500);
  for (const cable of cables) cable.cut(duration, chance.chance(0.5));
};

const suspend: Fault = (_simulation, { process }, chance) => process.suspend(chance.between(1, 3_000));

const setWallClock: Fault = (_simulation, { process }, chance) =>
  process.setWallClock(chance.pick([-3_600_000, -2_000, -500, 300, 1_500, 3_600_000]) * chance.next());

const cut: Fault = (_simulation, { cable }, chance) => cable.cut(chance.between(1, 1_500), chance.chance(0.5));

/** Cuts the connection for longer than any lease that is not extended. */
const longCut: Fault = (_simulation, { cable }, chance) => cable.cut(chance.between(1_000, 3_000), chance.chance(0.5));

const disconnect: Fault = (_simulation, { cable }) => cable.disconnect();

const freeze: Fault = ({ servers }, _member, chance) => chance.pick(servers).freeze(chance.between(1, 1_000));

const restart: Fault = ({ servers }, _member, chance) => chance.pick(servers).restart(chance.between(1, 500), true);

const loseData: Fault = (simulation, _member, chance) => {
  announceLoss(simulation);
  for (const server of simulation.servers) server.restart(chance.between(20, 500), false);
};

/** FLUSHALL. All clients stay connected, and the next request arrives a moment later. */
const flush: Fault = (simulation) => {
  announceLoss(simulation);
  for (const server of simulation.servers) server.flush();
};

/** A replica becomes the master that has not received the latest writes. What was granted by them is granted again. */
const failOver: Fault = (simulation, _member, chance) => {
  const lag = chance.between(0, 50);
  const pause = chance.between(100, 500);
  const duration = UPSET + lag + pause;
  simulation.upset('a failover lost the latest writes', duration, { forgetsTokens: true });
  chance.pick(simulation.servers).failOver(lag, pause);
};

/** SCRIPT FLUSH. */
const forgetScripts: Fault = ({ servers }, _member, chance) => chance.pick(servers).forgetScripts();

/** As if the whole machine were restored from an old snapshot: neither its data nor its clock can be relied on. */
const loseDataAndTime: Fault = (simulation, member, chance) => {
  for (const server of simulation.servers) server.setClock(-chance.between(1, 1_000));
  loseData(simulation, member, chance);
};

const setServerClockBack: Fault = ({ servers }, _member, chance) =>
  chance.pick(servers).setClock(-chance.between(1, 1_000));

const advanceServerClock: Fault = (simulation, _member, chance) => {
  simulation.upset("the server's clock was advanced", UPSET);
  chance.pick(simulation.servers).setClock(chance.between(1, 1_000));
};

const forceRelease: Fault = (simulation, member, chance) => {
  const name = chance.pick(['stock', 'queue', 'ledger', 'page']);
  if (member.closing) return;
  simulation.upset('force-release', UPSET, { lock: name });
  member.locks.forceRelease(name).catch(() => {});
};

const shutDown: Fault = (simulation, member) => {
  if (simulation.alive.filter(({ closing }) => !closing).length > 1) void member.close();
};

export const FAULTS = {
  crash,
  stall,
  stallThread,
  blockLoop,
  cutBoth,
  suspend,
  setWallClock,
  cut,
  longCut,
  disconnect,
  freeze,
  restart,
  forgetScripts,
  loseData,
  failOver,
  flush,
  loseDataAndTime,
  setServerClockBack,
  advanceServerClock,
  forceRelease,
  shutDown,
};

export type FaultName = keyof typeof FAULTS;
