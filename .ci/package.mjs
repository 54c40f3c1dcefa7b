// npm run test:package: makes new applications like those of users, which compile with the packed library and with the
// settings that users may have, and run the code of README.md. The published program of the command line runs too.
import { finishWithJest, only, step } from './jest-run.mjs';
import { provideRedis } from './provide-redis.mjs';

if (!provideRedis()) process.exit(1);

step('build', '.ci/build.mjs');
process.env.JUST_BUILT = '1';
finishWithJest(
  ...only('test/(package/(matrix/|(package|published)\\.test)|cli/ending)'),
  '--verbose',
  ...process.argv.slice(2),
);
