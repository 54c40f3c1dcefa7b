// npm run test:package: applications that users may have, made anew, compile against the packed library, with the
// settings of theirs, and run what README.md shows. The command line's program is run as it is published, too.
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
