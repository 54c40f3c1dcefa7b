import { QuorumBackend } from '../../../lib/backends/quorum/quorum-backend.js';
import { MemoryBackend } from '../../../lib/backends/redis/in-process/memory-backend.js';
import { MemoryStore } from '../../../lib/backends/redis/in-process/memory-store.js';
import { describeLockBackend } from '../../contract/describe-lock-backend.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';
import { QUORUM } from './redis-nodes.js';

describeLockBackend(
  'QuorumBackend, three MemoryBackends',
  async () => {
    const clock = new VirtualRuntime();
    const stores = [new MemoryStore(), new MemoryStore(), new MemoryStore()];
    return {
      connect: async () => {
        const nodes = stores.map((store) => new MemoryBackend({ runtime: clock, store }));
        return { backend: new QuorumBackend({ nodes, runtime: clock }), id: clock.uuid(), clock };
      },
      stop: async () => {},
    };
  },
  QUORUM,
);
