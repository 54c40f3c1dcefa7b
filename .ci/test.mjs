// All checks except those of other scripts: whether redis-server is installed, lint, types, and then the tests, on the
// sources. Arguments go to jest:
//   npm test -- test/backends -t 'hands the lock'
import { begin, finish, runJest, step } from './jest-run.mjs';
import { provideRedis, redisVersion } from './provide-redis.mjs';

if (!provideRedis()) {
  process.exit(1);
}
console.log(`Node.js ${process.version}, ${redisVersion()}`);
step('scripts', '.ci/embed.mjs');
// Runs during the tests, which wait for most of their time.
const types = begin('types', 'node_modules/typescript/bin/tsc');
step('lint', 'node_modules/@biomejs/biome/bin/biome', 'check', '--error-on-warnings', '.');
const report = runJest('tests', ...process.argv.slice(2));
await types();
finish(report);
