/**
 * What processes observed of single flights, at the moment when they observed it. `call` names one call,
 * `<process>/<n>`. A run has the name of the call that runs, and this name is also its result.
 */
export type FlightEvent =
  | { readonly kind: 'asked'; readonly call: string; readonly name: string; readonly keepFor: number }
  | { readonly kind: 'answered'; readonly call: string; readonly run?: string; readonly error?: string }
  /** The body of the call began, under this owner of the lock. */
  | { readonly kind: 'began'; readonly run: string; readonly name: string; readonly owner: string }
  /** The run's lease was held at this moment, according to its process. */
  | { readonly kind: 'held'; readonly run: string }
  /** A call of forgetResult(), and its answer. */
  | { readonly kind: 'forgetting'; readonly call: string; readonly name: string }
  | { readonly kind: 'forgot'; readonly call: string }
  /** The process is dead. */
  | { readonly kind: 'crashed' }
  /** The server has lost its data. */
  | { readonly kind: 'data lost' };

/** `at`: milliseconds on the monotonic clock of the machine, see `machineTime`. */
export type FlightRecord = FlightEvent & { readonly at: number; readonly process: string };

export type AddFlightRecord = (at: number, event: FlightEvent) => void;
