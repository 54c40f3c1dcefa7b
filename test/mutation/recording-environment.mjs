import { mkdirSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { Socket } from 'node:net';
import { join } from 'node:path';
import Environment from '../support/jest/test-environment.mjs';

/** Records which functions and blocks of lib/ each suite executes, and the digests of the scripts that it sends. */
const FOLDER = process.env.RECORDED_SUITES;
const DIGEST = /\b[0-9a-f]{40}\b/g;

const session = new Session();
session.connect();
session.post('Profiler.enable');
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });

let digests = new Set();
const { write } = Socket.prototype;
Socket.prototype.write = function (chunk, ...more) {
  const text = typeof chunk === 'string' ? chunk : Buffer.from(chunk ?? '').toString('latin1');
  for (const [digest] of text.matchAll(DIGEST)) digests.add(digest);
  return write.call(this, chunk, ...more);
};

let suites = 0;

/** Jest calls it with `new`. */
export default function RecordingEnvironment(config, context) {
  const environment = Environment(config, context);
  const teardown = environment.teardown.bind(environment);
  environment.teardown = async () => {
    await teardown();
    session.post('Profiler.takePreciseCoverage', (_error, { result }) => {
      const scripts = result.filter(({ url }) => url.includes('/lib/') && !url.includes('/node_modules/'));
      const executed = scripts.filter(({ functions }) => functions.some(({ ranges }) => ranges[0].count > 0));
      mkdirSync(FOLDER, { recursive: true });
      const record = { suite: context.testPath, scripts: executed, digests: [...digests] };
      writeFileSync(join(FOLDER, `${process.pid}-${++suites}.json`), JSON.stringify(record));
      digests = new Set();
    });
  };
  return environment;
}
