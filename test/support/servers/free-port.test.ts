import { freePort } from './free-port.js';

describe('freePort', () => {
  const { random } = Math;
  afterEach(() => {
    Math.random = random;
  });

  it('does not give a port again, although nothing listens on it yet', async () => {
    const first = await freePort();
    const numbers = [(first - 12_000 + 0.5) / 10_000];
    Math.random = () => numbers.pop() ?? random();
    expect(await freePort()).not.toBe(first);
    expect(numbers).toEqual([]);
  });
});
