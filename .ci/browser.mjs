// npm run test:browser: the page of the dashboard in a real Chromium (CHROMIUM, or one of the PATH, else Debian's).
// Pictures of it are written to dist/screenshots. Arguments go to jest.
import { finishWithJest, only, step } from './jest-run.mjs';
import { provideChromium } from './provide-chromium.mjs';
import { provideRedis } from './provide-redis.mjs';

const chromium = provideChromium();
if (chromium === undefined) {
  console.log(
    'Skipped: there is no Chromium on the PATH, and it could not be installed. Install one, or give its path as CHROMIUM.',
  );
} else if (!provideRedis()) {
  process.exitCode = 1;
} else {
  process.env.CHROMIUM = chromium;
  step('scripts', '.ci/embed.mjs');
  finishWithJest(...only('test/browser/'), '--verbose', ...process.argv.slice(2));
}
