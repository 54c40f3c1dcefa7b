import { MemoryBackend } from '../../../../lib/backends/redis/in-process/memory-backend.js';
import { MemoryStore } from '../../../../lib/backends/redis/in-process/memory-store.js';
import { nodeRuntime } from '../../../../lib/engine/node-runtime.js';
import { describeSynchronizerBackend } from '../../../contract/describe-synchronizer-backend.js';

describeSynchronizerBackend('memory', async () => {
  const store = new MemoryStore();
  return {
    connect: async () => ({ backend: new MemoryBackend({ runtime: nodeRuntime, store }), id: nodeRuntime.uuid() }),
    stop: async () => {},
  };
});
