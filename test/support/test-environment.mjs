import { TestEnvironment } from 'jest-environment-node';

// A worker outlives a jest that was killed, and with it the servers that its tests have started. This file runs outside
// the sandbox of the tests, where `process` is the real one.
process.once('disconnect', () => process.exit(1));

export default TestEnvironment;
