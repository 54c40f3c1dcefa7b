import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { ROOT } from './support/markdown.js';

interface Service {
  readonly image: string;
  readonly ports: readonly string[];
}

/** The parser of a package that this repository has anyway. */
const { load } = createRequire(createRequire(join(ROOT, 'package.json')).resolve('@nestjs/swagger'))('js-yaml') as {
  load(text: string): { services: Record<string, Service> };
};

describe('docker-compose.yml', () => {
  const { services } = load(readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8'));

  it('has the servers that its first lines and docs/getting-started.md start', () => {
    expect(Object.keys(services)).toEqual(['redis', 'postgres']);
    expect(readFileSync(join(ROOT, 'docs/getting-started.md'), 'utf8')).toContain('docker compose up redis');
  });

  it.each(Object.entries(services))('starts one version of %s, for this machine alone', (_, { image, ports }) => {
    expect(image).toMatch(/^[a-z]+:\d+(\.\d+)+$/);
    expect(ports.filter((port) => !/^127\.0\.0\.1:\d+:\d+$/.test(port))).toEqual([]);
    expect(ports).not.toEqual([]);
  });
});
