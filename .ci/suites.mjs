// What is tested, and by which command: npm test runs everything that no suite below has for itself. jest.config.mjs,
// .ci/run-tests.mjs and .ci/jest.mjs read this table.

/** @typedef {object} Suite
 * @property {string} about what it tests, in a line
 * @property {string} takes how long that takes on two cores, and what it needs
 * @property {string} [tests] the paths of its tests, a regular expression; npm test leaves them out
 */

/** @type {Record<string, Suite>} */
export const SUITES = {
  long: {
    about:
      'what takes long by nature: the demo, memory over thousands of calls, thousands of random scripts, deadlocks in real time, processes that end',
    takes: '2 min',
    tests: 'test/.*\\.long\\.test\\.ts$',
  },
  topologies: {
    about:
      'the contract of backends on a cluster, on Sentinel and on quorums of servers; what a quorum of five survives; failovers and moved slots while processes wait in line; the contract of Redis clients',
    takes: '2 min',
    tests:
      'test/.*/(contract-(cluster|sentinel|three-servers)|(contract|outages)-five-servers|(line|newest|single-tries)-on-topologies|redis-(cluster|sentinel)|links/\\w+)\\.test',
  },
  package: {
    about: 'the packed library in fresh applications; the command line',
    takes: '2 to 4 min, and the npm registry',
    tests: 'test/(package/(package|published|readme)\\.test|cli/ending)',
  },
  matrix: {
    about:
      'the packed library with other versions of NestJS, Redis clients and TypeScript, with other packages, and beside the library that a fleet moves from',
    takes: '4 to 5 min, and the npm registry',
    tests: 'test/package/(matrix/|moving-over)',
  },
  docs: {
    about: 'the code in README.md and docs/, links, options, messages',
    takes: '70 s, PostgreSQL, MariaDB and the npm registry',
    tests: 'test/docs/',
  },
  browser: {
    about: "the dashboard's page in a real Chromium",
    takes: '75 s, and Chromium',
    tests: 'test/browser/',
  },
  chaos: {
    about: 'faults in a simulation, against a model, and with real servers',
    takes: '5 min',
    tests: 'test/chaos/',
  },
  interop: {
    about: 'locks shared with the real Redisson',
    takes: '15 s, a JDK and Maven',
    tests: 'test/interop/',
  },
  sql: {
    about:
      'row locks and advisory locks on PostgreSQL and MariaDB; postgresql-17, postgresql-18, mariadb-11.8 or mysql-9.7',
    takes: '75 s, and both servers; Debian or Ubuntu for the named ones',
    tests: 'test/sql/',
  },
  spec: {
    about: 'TLA+ specifications, and traces of the simulation checked against them',
    takes: '3 min, a JDK and Maven',
  },
  histories: {
    about: 'histories of locks, judged by a second checker',
    takes: '1 min, and Go',
  },
  peers: {
    about: 'the packed library and five others under the same fourteen faults, and what two checkers say',
    takes: '40 min, and the npm registry; Go for the second checker',
  },
  soak: {
    about: 'six processes under faults: memory, handles, connections and keys; --minutes N for longer',
    takes: '6 min; as long as one says',
  },
  servers: {
    about: 'the Redis backend on Redis 6.2 and 8.0, Valkey 8.1 and 9.1, and the redis-server of the PATH',
    takes: '50 s for each server; Python for two of them, Debian for two others',
  },
  mutation: {
    about: 'whether tests notice mistakes; see test/mutation/README.md',
    takes: 'hours',
  },
};

/** The paths of the tests of suites, which npm test leaves out. */
export function leftOut() {
  return Object.values(SUITES)
    .filter(({ tests }) => tests !== undefined)
    .map(({ tests }) => `<rootDir>/${tests}`);
}
