import * as mistakes from '../../../chaos/broken-scripts.js';

const { brokenScripts, ...changes } = mistakes;

/** The simulation has to find them (`npm run suite -- chaos`). Whoever changes a script learns here that one follows it. */
describe('a mistake of test/chaos/broken-scripts.ts', () => {
  it.each(Object.entries(changes))('can be made in the scripts: %s', (_name, each) => {
    expect(() => brokenScripts(each)).not.toThrow();
  });
});
