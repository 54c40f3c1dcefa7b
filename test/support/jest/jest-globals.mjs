// Replaces '@jest/globals' for suites that run without a sandbox; see runtime.cjs.
const globals = globalThis[Symbol.for('jest-globals-of-this-suite')];
export const { jest, expect, describe, it, test, beforeAll, beforeEach, afterAll, afterEach } = globals;
