import { sqlServersAreHere } from './.ci/sql-servers.mjs';

// Of the tests of row locks, one runs always, and one where there are servers; `npm run test:sql` has all.
const SQL = sqlServersAreHere() ? 'pglite|lock-rows' : 'pglite';

/** Contracts on servers that take long to start: `npm run test:topologies`. */
export const TOPOLOGIES = '/(contract-(cluster|sentinel|five-servers)|links/\\w+)\\.test';

export default {
  testEnvironment: './test/support/jest/test-environment.mjs',
  // The suites of a worker share its modules. A suite that cannot begins with `@sandbox`; see test/README.md.
  runtime: './test/support/jest/runtime.cjs',
  roots: ['<rootDir>/test'],
  testMatch: ['**/*.test.ts'],
  // These have scripts of their own, which give another list here.
  testPathIgnorePatterns: [
    '/node_modules/',
    `<rootDir>/test/((benchmark|browser|chaos|docs|interop|package/matrix)/|package/(package|published)\\.test|cli/ending\\.test|sql/(?!${SQL}))`,
    TOPOLOGIES,
    '\\.long\\.test\\.ts$',
  ],
  testSequencer: './test/support/jest/longest-first.mjs',
  // A suite waits for nine tenths of its time, for leases to end and for servers: this many workers keep two cores busy.
  maxWorkers: 12,
  // Tests that wait come to seconds; those that compute are ten times as slow on a machine that is busy elsewhere.
  testTimeout: 90_000,
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: {
    '^nestjs-redis-lock$': '<rootDir>/lib/index.ts',
    '^nestjs-redis-lock/(\\w+)$': '<rootDir>/lib/$1.ts',
    '^(\\.{1,2}/.*)\\.js$': '$1',
  },
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      {
        jsc: {
          parser: { syntax: 'typescript', decorators: true },
          transform: { legacyDecorator: true, decoratorMetadata: true },
          target: 'es2022',
        },
        module: { type: 'es6' },
      },
    ],
  },
};
