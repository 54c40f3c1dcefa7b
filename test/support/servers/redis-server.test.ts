import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { until } from '../until.js';
import { freePort } from './free-port.js';
import { type RedisServer, startRedis } from './redis-server.js';

describe('startRedis', () => {
  const servers: RedisServer[] = [];
  const start = async (...args: Parameters<typeof startRedis>) => {
    const server = await startRedis(...args);
    servers.push(server);
    return server;
  };
  afterEach(() => Promise.all(servers.splice(0).map((server) => server.stop())));

  it('gives each caller its own server, never on 6379', async () => {
    const [one, two] = await Promise.all([start(), start()]);
    await one.client().set('key', 'one');
    expect(await two.client().get('key')).toBeNull();
    expect(one.port).not.toBe(two.port);
    expect([one.port, two.port]).not.toContain(6379);
  });

  it('passes further arguments on', async () => {
    const server = await start({ args: ['--maxmemory', '5mb'] });
    expect(await server.client().config('GET', 'maxmemory')).toEqual(['maxmemory', String(5 * 1024 * 1024)]);
  });

  it('stops the process, its clients and its folder', async () => {
    const server = await start();
    const client = server.client();
    await client.ping();
    const { pid } = server;
    await server.stop();
    expect(alive(pid)).toBe(false);
    expect(client.status).toBe('end');
    expect(existsSync(server.folder)).toBe(false);
  });

  it('comes back on its port, where the clients reconnect', async () => {
    const server = await start();
    const client = server.client();
    await client.set('key', 'value');
    const { pid, port } = server;
    await server.restart();
    expect(server.port).toBe(port);
    expect(server.pid).not.toBe(pid);
    expect(await client.get('key')).toBeNull();
  });

  it('stands still between pause and resume', async () => {
    const server = await start();
    const client = server.client();
    await client.ping();
    server.pause();
    const reply = client.ping();
    await until(() => /^State:\s+T/m.test(readFileSync(`/proc/${server.pid}/status`, 'utf8')));
    server.resume();
    expect(await reply).toBe('PONG');
  });

  it('waits for the port that it is given', async () => {
    const port = await freePort();
    const holder = createServer().listen(port, '127.0.0.1');
    await once(holder, 'listening');
    const starting = start({ port });
    const first = await Promise.race([
      starting.then(() => 'started'),
      new Promise((r) => setTimeout(r, 300, 'waiting')),
    ]);
    expect(first).toBe('waiting');
    holder.close();
    expect((await starting).port).toBe(port);
  });

  it('says why a server does not start', async () => {
    await expect(startRedis({ args: ['--no-such-option', 'x'] })).rejects.toThrow(/no-such-option/);
  });

  it('takes the server along when the process is killed', async () => {
    const args = ['../jest/typescript-loader.mjs', '../orphan.ts'].map((file) =>
      fileURLToPath(new URL(file, import.meta.url)),
    );
    const parent = spawn(process.execPath, ['--import', ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = await once(parent.stdout, 'data');
    const { pid, folder } = JSON.parse(String(line));
    expect(alive(pid)).toBe(true);
    parent.kill('SIGKILL');
    await until(() => !alive(pid) && !existsSync(folder));
  });
});

function alive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}
