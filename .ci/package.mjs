// npm run test:package: applications that users may have compile against the packed library, with the settings of theirs.
import { finishWithJest, only, step } from './jest-run.mjs';

step('scripts', '.ci/embed.mjs');
finishWithJest(...only('test/package/matrix/'), '--verbose', ...process.argv.slice(2));
