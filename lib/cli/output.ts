import { CommandError, EXIT } from './command-error.js';
import { printable, printableJson } from './text/printable.js';

/** What the program prints: lines for people, or one JSON document; messages go to the standard error output. */
export class Output {
  constructor(readonly isJson: boolean) {
    // Whoever reads may stop: `nestjs-redis-lock ls | head`.
    process.stdout.on('error', () => process.exit(EXIT.ok));
  }

  /** @param document what programs read instead of the lines */
  result(document: unknown, lines: readonly string[]): void {
    process.stdout.write(`${this.isJson ? printableJson(document) : lines.join('\n')}\n`);
  }

  /** @param document what programs read instead of nothing, if there is no result */
  error({ kind, message }: CommandError, document: object = {}): void {
    if (this.isJson) this.result({ ...document, error: { kind, message } }, []);
    this.note(message);
  }

  note(message: string): void {
    process.stderr.write(`${printable(message)}\n`);
  }
}
