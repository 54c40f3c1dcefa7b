// npm run test:topologies: the contract of backends, with servers that take long to start: a cluster, Sentinel, and the
// nodes of a quorum. npm test runs the same clauses in memory, on one server, and on a quorum in memory. Also the
// contract of the adapters of Redis clients, on one server, clusters and Sentinels.
import { TOPOLOGIES } from '../jest.config.mjs';
import { finishWithJest, limitTo, only, step } from './jest-run.mjs';
import { provideRedis } from './provide-redis.mjs';

if (!provideRedis()) process.exit(1);
limitTo(15);
step('scripts', '.ci/embed.mjs');
finishWithJest(...only(TOPOLOGIES), ...process.argv.slice(2));
