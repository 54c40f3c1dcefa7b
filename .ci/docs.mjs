// npm run test:docs: compiles the code in README.md and docs/, runs what can be run, and checks links, options and
// messages. Other arguments go to jest: npm run test:docs -- -t 'links'
import { finishWithJest, only, step } from './jest-run.mjs';
import { provideRedis } from './provide-redis.mjs';

if (!provideRedis()) process.exit(1);
step('scripts', '.ci/embed.mjs');
finishWithJest(...only('test/docs/'), ...process.argv.slice(2));
