// A thread that overwrites a slot again and again, as the event loop does, and says about each lease what follows from
// its contents.
import { workerData } from 'node:worker_threads';
import { SlotChunk } from '../../lib/standby/slots.js';

const { memory, control, prefix } = workerData as { memory: SharedArrayBuffer; control: Int32Array; prefix: string };
const chunk = new SlotChunk(2, 64, prefix, memory);
for (let n = 1; Atomics.load(control, 0) === 0; n++) {
  const digit = n % 7;
  const digits = String(digit).repeat(1 + (n % 20));
  chunk.write(0, `k${digits}`, `${prefix}:${digits}`, prefix.length, 'fenced', digit, digit);
  const state = chunk.idleState(0);
  if (state !== undefined) chunk.say(0, state, 1e9 * digit + digit);
  for (let pause = n % 50; pause > 0; pause--) Atomics.store(control, 1, n);
  chunk.free(0);
}
