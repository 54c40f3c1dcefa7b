/** Where warnings and errors go; NestJS's Logger and the console both fit. @publicApi */
export interface LockLogger {
  /** One line when the service has reached its Redis. Optional. */
  log?(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}
