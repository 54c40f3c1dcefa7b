import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

describe('the lint rule for imports', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'import-direction-'));
    await Promise.all(['biome.json', '.gitignore'].map((file) => cp(join(ROOT, file), join(folder, file))));
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  const lint = async (path: string, specifier: string) => {
    const file = join(folder, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, `import type { Something } from '${specifier}';\n\nexport type It = Something;\n`);
    const biome = join(ROOT, 'node_modules/@biomejs/biome/bin/biome');
    return new Promise<string>((resolve) => {
      execFile(process.execPath, [biome, 'lint', path], { cwd: folder }, (_error, stdout, stderr) =>
        resolve(stdout + stderr),
      );
    });
  };

  it.each([
    ['lib/engine/lease/lease.ts', '../../backends/lock-backend.js'],
    ['lib/engine/lease/lease.ts', '../../backends/runtime.js'],
    ['lib/locks/fair-lock.ts', '../engine/lease/lease.js'],
    ['lib/backends/redis/redis-backend.ts', 'ioredis'],
    ['lib/backends/quorum/quorum-backend.ts', '../redis/redis-backend.js'],
    ['lib/nest/redis-lock.module.ts', '@nestjs/common'],
    ['lib/service/create-lock-service.ts', '../backends/redis/redis-backend.js'],
    ['lib/nest/redis-lock.module.ts', '../service/create-lock-service.js'],
    ['lib/index.ts', './nest/redis-lock.module.js'],
  ])('lets %s import %s', async (path, specifier) => {
    const answer = await lint(path, specifier);
    expect(answer).toContain('Checked 1 file');
    expect(answer).not.toContain('noRestrictedImports');
  });

  it.each([
    ['lib/engine/lease/lease.ts', '../../backends/redis/redis-backend.js'],
    ['lib/engine/lease/lease.ts', '../../backends/memory/memory-backend.js'],
    ['lib/engine/lease/lease.ts', '../../locks/fair-lock.js'],
    ['lib/engine/lease/lease.ts', '../../nest/redis-lock.module.js'],
    ['lib/engine/lease/lease.ts', '../../service/lock-service.js'],
    ['lib/engine/lease/lease.ts', 'ioredis'],
    ['lib/engine/lease/lease.ts', '@nestjs/common'],
    ['lib/locks/fair-lock.ts', '../backends/quorum/quorum-backend.js'],
    ['lib/locks/fair-lock.ts', '../service/lock-service.js'],
    ['lib/locks/fair-lock.ts', 'ioredis'],
    ['lib/backends/runtime.ts', '../engine/lease/lease.js'],
    ['lib/backends/redis/redis-backend.ts', '../../engine/errors.js'],
    ['lib/backends/memory/memory-backend.ts', '../../locks/fair-lock.js'],
    ['lib/backends/memory/memory-backend.ts', '@nestjs/common'],
    ['lib/service/create-lock-service.ts', '@nestjs/common'],
    ['lib/service/create-lock-service.ts', '../nest/redis-lock.module.js'],
    ['lib/core.ts', '@nestjs/common'],
  ])('does not let %s import %s', async (path, specifier) => {
    expect(await lint(path, specifier)).toContain('noRestrictedImports');
  });
});
