import { availableParallelism } from 'node:os';
import { leftOut } from './.ci/suites.mjs';

export default {
  globalSetup: './test/support/jest/transpile-first.mjs',
  testEnvironment: './test/support/jest/test-environment.mjs',
  // The suites of a worker share its modules. A suite that cannot begins with `@sandbox`; see test/README.md.
  runtime: './test/support/jest/runtime.cjs',
  roots: ['<rootDir>/test'],
  testMatch: ['**/*.test.ts'],
  // A suite replaces this list by its own paths.
  testPathIgnorePatterns: ['/node_modules/', ...leftOut()],
  reporters: ['default', './test/support/jest/some-test-ran.mjs'],
  testSequencer: './test/support/jest/longest-first.mjs',
  // A suite spends five sixths of its time waiting for leases to end and for servers, so six workers keep a core busy.
  // More than 16 would wait for the longest suite.
  maxWorkers: Math.min(16, 6 * availableParallelism()),
  // At the end, all workers are killed at once, and two busy cores take more than jest's half second to free their
  // memory. Without this, jest warns that they have not exited gracefully.
  workerGracefulExitTimeout: 20_000,
  // Tests that wait take seconds. Tests that compute are ten times as slow on a machine that is busy otherwise.
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
