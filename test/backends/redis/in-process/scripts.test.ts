/** Every suite of `scripts/`, with the scripts as JavaScript on the server in this process. */
process.env.TEST_SCRIPTS = 'in-process';

await import('../scripts/client-scripts.test.js');
await import('../scripts/fair-scripts.test.js');
await import('../scripts/flight-scripts.test.js');
await import('../scripts/grant-scripts.test.js');
await import('../scripts/line-scripts.test.js');
await import('../scripts/lock-scripts.test.js');
await import('../scripts/permit-scripts.test.js');
await import('../scripts/read-write-scripts.test.js');
await import('../scripts/shared-lock-scripts.test.js');
