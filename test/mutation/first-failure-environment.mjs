import Environment from '../support/jest/test-environment.mjs';

/** The full name of the only test to run. */
const ONLY = process.env.ONLY_TEST;

/**
 * Skips the tests after the first that fails: one is enough to kill a mutant, and where nothing works any more, each of
 * them would wait until its time limit.
 *
 * Jest calls it with `new`.
 */
export default function FirstFailureEnvironment(config, context) {
  const environment = Environment(config, context);
  let hasFailed = false;
  environment.handleTestEvent = ({ name, test }) => {
    if (name === 'test_fn_failure' || name === 'hook_failure') hasFailed = true;
    if (name === 'test_start' && (hasFailed || (ONLY !== undefined && fullName(test) !== ONLY))) test.mode = 'skip';
  };
  return environment;
}

/** As in Jest's reports: the titles of the blocks around it, and its own. */
function fullName({ name, parent }) {
  return parent.name === 'ROOT_DESCRIBE_BLOCK' ? name : `${fullName(parent)} ${name}`;
}
