// npm run test:interop: this library and the real Redisson on one Redis. Needs a JDK (17 or newer) and Maven; without
// them the script says so and succeeds, because most machines have neither.
import { spawnSync } from 'node:child_process';
import { finishWithJest, only, root, step } from './jest-run.mjs';
import { has, skip } from './needs.mjs';
import { provideRedis } from './provide-redis.mjs';

if (!has('javac', '-version') || !has('mvn', '-version')) {
  skip(
    'SKIPPED: the tests against the real Redisson need a JDK (17 or newer) and',
    'Maven on the PATH. Nothing was tested here about sharing locks with Java.',
  );
}
if (!provideRedis()) process.exit(1);

const run = (title, program, args, options = {}) => {
  console.log(`\n── ${title}`);
  const { status } = spawnSync(program, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'], ...options });
  if (status !== 0) process.exit(status ?? 1);
};
run('Redisson', 'mvn', ['-q', '-B', '-ntp', 'compile', 'dependency:copy-dependencies', '-DincludeScope=runtime'], {
  cwd: `${root}test/interop/java`,
});
step('scripts', '.ci/embed.mjs');
finishWithJest(...only('test/interop/'), '--verbose', ...process.argv.slice(2));
