import { MemoryBackend } from '../../../../lib/backends/redis/in-process/memory-backend.js';
import { MemoryStore } from '../../../../lib/backends/redis/in-process/memory-store.js';
import { describeLockBackend } from '../../../contract/describe-lock-backend.js';
import { VirtualRuntime } from '../../../support/runtime/virtual-runtime.js';

describeLockBackend('MemoryBackend', async () => {
  const store = new MemoryStore();
  const clock = new VirtualRuntime();
  return {
    connect: async () => ({ backend: new MemoryBackend({ runtime: clock, store }), id: clock.uuid(), clock }),
    stop: async () => {},
  };
});
