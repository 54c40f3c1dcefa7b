import { spawnSync } from 'node:child_process';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

/**
 * The path of a Chromium: the one of CHROMIUM, or one on the PATH. On Debian, as root or with sudo, it is installed if
 * necessary. `undefined` if there is none.
 */
export function provideChromium() {
  const given = process.env.CHROMIUM;
  if (given) return given;
  const present = find();
  if (present !== undefined || !runs('apt-get', ['--version'])) return present;
  console.log('No Chromium is on the PATH: installing it with apt-get');
  aptGet('update');
  aptGet('install', '-y', '--no-install-recommends', 'chromium');
  return find();
}

function find() {
  return NAMES.map((name) => spawnSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }))
    .filter(({ status }) => status === 0)
    .map(({ stdout }) => stdout.trim())[0];
}

function aptGet(...args) {
  const command = ['env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-q', ...args];
  const [program, ...rest] = process.getuid() === 0 ? command : ['sudo', '-n', ...command];
  runs(program, rest, 'inherit');
}

function runs(program, args, stdio = 'ignore') {
  return spawnSync(program, args, { stdio: ['ignore', stdio, stdio] }).status === 0;
}
