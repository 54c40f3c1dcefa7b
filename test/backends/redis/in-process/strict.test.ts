// @ts-expect-error: JavaScript without types
import { translateScripts } from '../../../../.ci/build/translate-lua.mjs';
import { InProcessServer } from '../../../../lib/backends/redis/in-process/in-process-server.js';
import { TRANSLATED_SCRIPTS } from '../../../../lib/backends/redis/in-process/translated-scripts.generated.js';
import { scripts } from '../../../../lib/backends/redis/scripts.js';

/** The server in this process does what Redis does, or says what it does not know. */

const server = () => new InProcessServer({ scripts: TRANSLATED_SCRIPTS, micros: () => 1e15 });

/** A server with one script, which it runs. */
function run(text: string, args: readonly string[] = []): unknown {
  const translated = translate(text);
  // The build writes this text into a module.
  const factory = new Function(`return ${translated};`)();
  const only = new InProcessServer({ scripts: (lua) => factory(lua), micros: () => 1e15 });
  return only.run(scripts['time-1'].sha1, [], args);
}

function translate(text: string): string {
  return translateScripts(new Map(), new Map([['time-1', { path: 'a/script.lua', text, includes: [] }]]));
}

describe('the translation', () => {
  it.each([
    ['goto', 'local a = 1\ngoto done', /a\/script\.lua.*2/],
    ['a function that is not local', '\nfunction f() end', /a\/script\.lua:2: a function that is not local/],
    ['a repeat loop', '\n\nrepeat local a = 1 until true', /a\/script\.lua:3: RepeatStatement/],
    ['a block', 'do local a = 1 end', /a\/script\.lua:1: DoStatement/],
    ['a method', "local a = 'x'\nreturn a:upper()", /a\/script\.lua:2: the method upper/],
    ['a global', 'return os', /a\/script\.lua:1: the global os/],
    ['an unknown function of a library', "return string.rep('a', 2)", /a\/script\.lua:1: string\.rep/],
    ['an unknown command of Redis', 'return redis.log(1)', /a\/script\.lua:1: redis\.log/],
    ['a power', 'return 2 ^ 3', /a\/script\.lua:1: the operator \^/],
    ['another iterator', 'for a in next, {} do end', /a\/script\.lua:1: a for loop over anything but/],
    ['a step that is computed', 'for i = 1, 2, #ARGV do end', /a\/script\.lua:1: a for loop whose step is no number/],
    ['a call without parentheses', "return tostring 'a'", /a\/script\.lua:1: StringCallExpression/],
    ['two locals of a name', 'local a = 1\nlocal a = 2', /a\/script\.lua:2: a second local a/],
  ])('stops the build for %s', (_construct, text, message) => {
    expect(() => translate(text)).toThrow(message);
  });

  it('writes a number with 17 digits for Redis, and with 14 into a text', () => {
    expect(run("redis.call('SET', 'a', 0.1 + 0.2) return redis.call('GET', 'a')")).toBe('0.30000000000000004');
    expect(run("return '' .. (0.1 + 0.2)")).toBe('0.3');
    expect(run("redis.call('SET', 'a', 1234567890123456) return redis.call('GET', 'a')")).toBe('1234567890123456');
    expect(run("return '' .. 1234567890123456")).toBe('1.2345678901235e+15');
  });
});

describe('the server in this process', () => {
  it.each([
    ['GETDEL', ['a']],
    ['SET', ['a', '1', 'EX', '2']],
    ['SET', ['a', '1', 'NX']],
    ['PEXPIRE', ['a', '1', 'LT']],
    ['ZADD', ['a', 'INCR', '1', 'b']],
    ['ZRANGE', ['a', '0', '-1', 'REV']],
    ['ZRANGEBYSCORE', ['a', '0', '1', 'REV']],
    ['LREM', ['a', '0', 'b']],
    ['PUBSUB', ['NUMPAT']],
    ['COMMAND', ['DOCS', 'get']],
    ['EVAL', ['return 1', '0']],
  ])('does not guess what %s %j is', (name, args) => {
    expect(() => server().execute(name, args)).toThrow(/^The Redis server in this process does not know .*/);
    expect(() => server().execute(name, args)).toThrow(new RegExp(`(?<!\\w)(?:${name}|${args.join('|')})(?!\\w)`));
  });

  it.each([
    ['GET', []],
    ['GET', ['a', 'b']],
    ['HSET', ['a', 'b']],
    ['HSET', ['a', 'b', '1', 'c']],
    ['ZADD', ['a', '1']],
    ['PTTL', []],
  ])('refuses %s %j, as Redis does', (name, args) => {
    expect(() => server().execute(name, args)).toThrow(
      `ERR wrong number of arguments for '${name.toLowerCase()}' command`,
    );
  });

  it('fails for what a script passes and it does not know', () => {
    expect(() => run("return redis.call('SETEX', 'a', 1, 2)")).toThrow('does not know the command SETEX');
    expect(() => run("return redis.pcall('SET', 'a', 1, 'KEEPTTL')")).toThrow("the option 'KEEPTTL' of SET");
  });
});
