/** A reporter that fails the run if `-t` matched no test. Jest itself skips all tests then, and succeeds. */
export default class SomeTestRan {
  constructor({ testNamePattern, passWithNoTests }) {
    this.pattern = passWithNoTests ? undefined : testNamePattern;
  }

  onRunComplete(_contexts, { numPassedTests, numFailedTests, numRuntimeErrorTestSuites, wasInterrupted }) {
    if (!this.pattern || wasInterrupted || numPassedTests + numFailedTests + numRuntimeErrorTestSuites > 0) return;
    this.error = new Error(
      `No test ran: in these files, no title matches -t '${this.pattern}', or all tests that match are skipped`,
    );
    console.error(`\n${this.error.message}`);
  }

  /** Jest's exit code is 1 if a reporter returns an error here. */
  getLastError() {
    return this.error;
  }
}
