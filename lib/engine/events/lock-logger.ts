/** Where warnings and errors go; NestJS's Logger and the console both fit. @publicApi */
export interface LockLogger {
  warn(message: string): void;
  error(message: string): void;
}
