// npm run test:long: the files that end in .long.test.ts, which npm test leaves out because they take long. This takes
// two to three minutes on two cores. Arguments go to jest: npm run test:long -- -t 'demo'
import { finishWithJest, limitTo, only, step } from './jest-run.mjs';
import { provideRedis } from './provide-redis.mjs';

if (!provideRedis()) process.exit(1);
limitTo(15);
step('build', '.ci/build.mjs');
process.env.JUST_BUILT = 'yes';
finishWithJest(...only('\\.long\\.test\\.ts$'), ...process.argv.slice(2));
