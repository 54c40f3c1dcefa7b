import { BatchCall, Dispatch } from '../../lib/backends/redis/calls/batch-call.js';
import { CommandBatch } from '../../lib/backends/redis/calls/command-batch.js';
import { ScriptCall } from '../../lib/backends/redis/connection/script-call.js';

/** Makes a mistake in the calls of scripts, until the returned function is called. Only for tests of the simulation. */
export type BrokenCalls = () => () => void;

/** A call that is sent while another one of its batch is under way is sent once more with the next one. */
export const sendsSecondCallTwice: BrokenCalls = () => {
  const batch = CommandBatch.prototype as unknown as {
    command: never;
    calls: readonly unknown[];
    send(dispatch: Dispatch, items: readonly never[]): void;
  };
  const { send } = batch;
  const kept = new WeakMap<object, readonly never[]>();
  batch.send = function (dispatch, items) {
    const again = kept.get(this);
    kept.delete(this);
    if (again !== undefined) new BatchCall(this as never, this.command, again, new Dispatch()).send();
    if (this.calls.length > 0) kept.set(this, items);
    send.call(this, dispatch, items);
  };
  return () => {
    batch.send = send;
  };
};

/** Of a script that the server does not know, only half of the requests are sent again. */
export const resendsHalf: BrokenCalls = () => {
  interface Batched {
    readonly items: readonly { readonly request: never }[];
    readonly command: { keys(of: readonly never[]): string[]; args(of: readonly never[]): string[] };
  }
  const call = ScriptCall.prototype as unknown as {
    request: Batched;
    time: string | undefined;
    write(name: string, args: readonly string[], ...then: unknown[]): void;
  };
  const { write } = call;
  call.write = function (name, args, ...then) {
    const { items = [], command } = this.request;
    if (name !== 'eval' || items.length < 2) return write.call(this, name, args, ...then);
    const half = items.slice(0, Math.floor(items.length / 2)).map(({ request }) => request);
    const keys = command.keys(half);
    const time = this.time === undefined ? [] : [this.time];
    write.call(this, name, [args[0], String(keys.length), ...keys, ...time, ...command.args(half)], ...then);
  };
  return () => {
    call.write = write;
  };
};
