import { TestEnvironment } from 'jest-environment-node';

// A worker outlives a jest that was killed, and with it the servers that its tests have started. This file runs outside
// the sandbox of the tests, where `process` is the real one.
const end = () => process.exit(1);
process.once('disconnect', end);

// At the end jest stops listening to its worker, which is to exit by itself: our listener alone would keep it running.
process.on('removeListener', (event) => {
  if (event === 'message') process.off('disconnect', end);
});

export default TestEnvironment;
