import { type CommandError, EXIT } from './command-error.js';
import { printable, printableJson } from './text/printable.js';

/** The output of the program: lines for people, or one JSON document. Messages go to standard error. */
export class Output {
  private failure: NodeJS.ErrnoException | undefined;
  private hasDocument = false;
  /** Lines that must be shown even if standard output fails. */
  private record: readonly string[] = [];

  constructor(readonly isJson: boolean) {
    process.stdout.on('error', (error) => this.failed(error));
    process.stderr.on('error', () => {}); // it cannot be reported anywhere
  }

  /** @param document the JSON document that programs read instead of the lines */
  result(document: unknown, lines: readonly string[]): void {
    this.hasDocument = true;
    this.print(`${this.isJson ? printableJson(document) : lines.join('\n')}\n`);
  }

  /** Like {@link result}, for the result of a change. If standard output fails, the lines go to standard error. */
  change(document: unknown, lines: readonly string[]): void {
    this.record = lines;
    this.result(document, lines);
  }

  /** @param document the JSON document for programs if there is no result */
  error({ kind, message }: CommandError, document: object = {}): void {
    if (this.isJson && !this.hasDocument) this.result({ ...document, error: { kind, message } }, []);
    this.note(message);
  }

  note(message: string): void {
    process.stderr.write(`${printable(message)}\n`);
  }

  /** Prints text unchanged. */
  print(text: string): void {
    try {
      process.stdout.write(text);
    } catch (error) {
      this.failed(error as Error);
    }
  }

  /** Waits until everything is written. @returns whether more can be written */
  async flush(): Promise<boolean> {
    if (this.failure === undefined) await new Promise<void>((resolve) => process.stdout.write('', () => resolve()));
    // The error event follows the callback.
    await new Promise((resolve) => setImmediate(resolve));
    return this.failure === undefined;
  }

  /**
   * Waits until everything is written.
   *
   * @param exitCode of the command
   * @returns the exit code of the program
   */
  async end(exitCode: number): Promise<number> {
    await this.flush();
    const { failure, record } = this;
    // EPIPE: the program that reads the output has ended, as in `nestjs-redis-lock ls | head`.
    if (failure === undefined || failure.code === 'EPIPE') return exitCode;
    for (const line of [`The output could not be written: ${failure.message}`, ...record]) this.note(line);
    return EXIT.failure;
  }

  private failed(error: Error): void {
    this.failure ??= error;
  }
}
