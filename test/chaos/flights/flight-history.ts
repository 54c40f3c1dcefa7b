/**
 * What processes saw of single flights, in the moment in which they saw it. `call` names one call, `<process>/<n>`; a
 * run is named by the call that runs, and its result is this name.
 */
export type FlightEvent =
  | { readonly kind: 'asked'; readonly call: string; readonly name: string; readonly keepFor: number }
  | { readonly kind: 'answered'; readonly call: string; readonly run?: string; readonly error?: string }
  /** The body of the call began, under this owner of the lock. */
  | { readonly kind: 'began'; readonly run: string; readonly name: string; readonly owner: string }
  /** The run's lease was held at this moment, as its process saw it. */
  | { readonly kind: 'held'; readonly run: string }
  /** A call of forgetResult(), and its answer. */
  | { readonly kind: 'forgetting'; readonly call: string; readonly name: string }
  | { readonly kind: 'forgot'; readonly call: string }
  /** The process is dead. */
  | { readonly kind: 'crashed' }
  /** The server has lost its data by now. */
  | { readonly kind: 'data lost' };

/** `at`: milliseconds on the monotonic clock of the machine, see `machineTime`. */
export type FlightRecord = FlightEvent & { readonly at: number; readonly process: string };

export type AddFlightRecord = (at: number, event: FlightEvent) => void;
