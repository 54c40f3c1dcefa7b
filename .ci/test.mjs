// All checks: redis-server is there, the build, lint, types, then the tests. Arguments go to jest:
//   npm test -- test/contract -t 'hands the lock'
import { finishWithJest, step } from './jest-run.mjs';
import { provideRedis, redisVersion } from './provide-redis.mjs';

if (!provideRedis()) {
  process.exit(1);
}
console.log(`Node.js ${process.version}, ${redisVersion()}`);
step('build', '.ci/build.mjs');
// The tests of the package need not build it a second time.
process.env.JUST_BUILT = 'yes';
step('lint', 'node_modules/@biomejs/biome/bin/biome', 'check', '--error-on-warnings', '.');
step('types', 'node_modules/typescript/bin/tsc');
finishWithJest(...process.argv.slice(2));
