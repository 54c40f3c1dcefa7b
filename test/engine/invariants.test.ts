import { CHECKED, invariant } from '../../lib/engine/invariants.js';

describe('an invariant of the engine', () => {
  it('is checked in the tests of this library', () => {
    expect(CHECKED).toBe(true);
  });

  it('ends what violates it, with what is wrong', () => {
    invariant(true, 'more answers than requests');
    expect(() => invariant(false, 'more answers than requests')).toThrow(
      'The lock engine is in a state that must not exist: more answers than requests',
    );
  });
});
