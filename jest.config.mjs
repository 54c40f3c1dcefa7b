import { sqlServersAreHere } from './.ci/sql-servers.mjs';

// Of the tests of row locks, one runs always, and one where there are servers; `npm run test:sql` has all.
const SQL = sqlServersAreHere() ? 'pglite|lock-rows' : 'pglite';

export default {
  testEnvironment: './test/support/jest/test-environment.mjs',
  roots: ['<rootDir>/test'],
  testMatch: ['**/*.test.ts'],
  // These have scripts of their own, which give another list here.
  testPathIgnorePatterns: [
    '/node_modules/',
    `<rootDir>/test/((benchmark|browser|chaos|docs|interop|package/matrix)/|package/package\\.test|sql/(?!${SQL}))`,
    '\\.long\\.test\\.ts$',
  ],
  testSequencer: './test/support/jest/longest-first.mjs',
  // Most tests wait more than they compute: six workers keep two cores busy.
  maxWorkers: 6,
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
