export { instrumentLocks, type LockInstrumentation, type LockInstrumentationOptions } from './otel/instrument-locks.js';
