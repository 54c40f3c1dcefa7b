import { LockBusyError, LockUnavailableError } from '../../../lib/engine/errors.js';
import { falseWhenBusy, nullWhenBusy } from '../../../lib/engine/wait/null-when-busy.js';

describe('an attempt that reports a busy lock by its result', () => {
  const busy = () => Promise.reject(new LockBusyError('busy', 'order', 100, undefined));
  const unavailable = () => Promise.reject(new LockUnavailableError('no answer', 'order'));

  it('gives null or false when the lock stayed busy', async () => {
    expect(await nullWhenBusy(busy())).toBeNull();
    expect(await falseWhenBusy(busy())).toBe(false);
  });

  it('gives the result, or true, when it succeeded', async () => {
    expect(await nullWhenBusy(Promise.resolve('lease'))).toBe('lease');
    expect(await falseWhenBusy(Promise.resolve(undefined))).toBe(true);
  });

  it('passes on all other errors', async () => {
    await expect(nullWhenBusy(unavailable())).rejects.toThrow(LockUnavailableError);
    await expect(falseWhenBusy(unavailable())).rejects.toThrow(LockUnavailableError);
  });
});
