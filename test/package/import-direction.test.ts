import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const ALLOWED = [
  ['lib/engine/terms/lease.ts', '../../backends/lock-backend.js'],
  ['lib/engine/terms/lease.ts', '../../backends/runtime.js'],
  ['lib/handles/fair-lock.ts', '../engine/terms/lease.js'],
  ['lib/backends/redis/links/ioredis/client.ts', 'ioredis'],
  ['lib/backends/quorum/quorum-backend.ts', '../redis/redis-backend.js'],
  ['lib/nest/redis-lock.module.ts', '@nestjs/common'],
  ['lib/service/create-lock-service.ts', '../backends/redis/redis-backend.js'],
  ['lib/nest/redis-lock.module.ts', '../service/create-lock-service.js'],
  ['lib/index.ts', './nest/redis-lock.module.js'],
  ['lib/sql/sql-lock-backend.ts', '../backend.js'],
  ['lib/sql/lock-rows.ts', '../engine/errors.js'],
  ['lib/sql/lock-rows.ts', '../engine/terms/duration.js'],
  ['lib/sql/row-locks.ts', './session-locks/row-lock-sessions.js'],
  ['lib/dashboard/dashboard.module.ts', '../index.js'],
  ['lib/dashboard/dashboard.options.ts', '../engine/errors.js'],
  ['lib/idempotency/idempotent.interceptor.ts', '../index.js'],
  ['lib/idempotency/idempotent.options.ts', '../engine/terms/duration.js'],
] as const;

const DENIED = [
  ['lib/engine/terms/lease.ts', '../../backends/redis/redis-backend.js'],
  ['lib/engine/terms/lease.ts', '../../backends/redis/in-process/memory-backend.js'],
  ['lib/engine/terms/lease.ts', '../../handles/fair-lock.js'],
  ['lib/engine/terms/lease.ts', '../../nest/redis-lock.module.js'],
  ['lib/engine/terms/lease.ts', '../../service/lock-service.js'],
  ['lib/engine/terms/lease.ts', 'ioredis'],
  ['lib/engine/terms/lease.ts', '@nestjs/common'],
  ['lib/handles/fair-lock.ts', '../backends/quorum/quorum-backend.js'],
  ['lib/handles/fair-lock.ts', '../service/lock-service.js'],
  ['lib/handles/fair-lock.ts', 'ioredis'],
  ['lib/backends/runtime.ts', '../engine/terms/lease.js'],
  ['lib/backends/redis/redis-backend.ts', '../../engine/errors.js'],
  ['lib/backends/redis/in-process/memory-backend.ts', '../../../handles/fair-lock.js'],
  ['lib/backends/redis/in-process/memory-backend.ts', '@nestjs/common'],
  ['lib/service/create-lock-service.ts', '@nestjs/common'],
  ['lib/service/create-lock-service.ts', '../nest/redis-lock.module.js'],
  ['lib/core.ts', '@nestjs/common'],
  ['lib/sql/sql-lock-backend.ts', '../backends/lock-backend.js'],
  ['lib/sql/session/holdings.ts', '../../backends/owner-ids.js'],
  ['lib/sql/open-backend.ts', '../engine/node-runtime.js'],
  ['lib/sql/row-locks.ts', '../service/lock-service.js'],
  ['lib/sql/row-locks.ts', '../index.js'],
  ['lib/dashboard/take-snapshot.ts', '../service/lock-inspection.js'],
  ['lib/dashboard/dashboard.module.ts', '../nest/redis-lock.constants.js'],
  ['lib/dashboard/lock-board.ts', '../backends/redis/redis-backend.js'],
  ['lib/idempotency/idempotent.interceptor.ts', '../nest/lock-service-property.js'],
  ['lib/idempotency/kept-answer.ts', '../engine/flights/serialize-result.js'],
] as const;

describe('the lint rule for imports', () => {
  let folder: string;
  let refused: Set<string>;

  /** One run of the linter for all cases. Each import has its own line in its file. */
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'import-direction-'));
    await Promise.all(['biome.json', '.gitignore'].map((file) => cp(join(ROOT, file), join(folder, file))));
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    const files = groupByPath([...ALLOWED, ...DENIED]);
    for (const [path, cases] of files) {
      const file = join(folder, path);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, cases.map(([, specifier]) => `export type * from '${specifier}';\n`).join(''));
    }
    const biome = join(ROOT, 'node_modules/@biomejs/biome/bin/biome');
    const args = [biome, 'lint', '--max-diagnostics=none', ...files.keys()];
    const answer = await new Promise<string>((resolve) => {
      execFile(process.execPath, args, { cwd: folder }, (_error, stdout, stderr) => resolve(stdout + stderr));
    });
    expect(answer).toContain(`Checked ${files.size} files`);
    const found = answer.matchAll(/^(\S+):(\d+):\d+ lint\/style\/noRestrictedImports/gm);
    refused = new Set([...found].map(([, path, line]) => [path, files.get(path)?.[Number(line) - 1][1]].join()));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it.each(ALLOWED)('lets %s import %s', (...importOf) => {
    expect(refused).not.toContain(importOf.join());
  });

  it.each(DENIED)('does not let %s import %s', (...importOf) => {
    expect(refused).toContain(importOf.join());
  });
});

type Import = readonly [path: string, specifier: string];

function groupByPath(imports: readonly Import[]): Map<string, Import[]> {
  const groups = new Map<string, Import[]>();
  for (const one of imports) groups.set(one[0], [...(groups.get(one[0]) ?? []), one]);
  return groups;
}
