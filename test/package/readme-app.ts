import { type Page, readPages } from '../docs/support/markdown.js';
import { typescriptBlocks } from '../docs/support/typescript-blocks.js';
import type { ThrowAwayApp } from './throw-away-app.js';

const ADDRESS = "connection: 'redis://localhost:6379'";

/**
 * README.md's code in a throw-away app. Each TypeScript block is a file, as in `npm run suite -- docs`, and a program
 * runs them.
 */
export class ReadmeApp {
  readonly #readme: Page = readPages().find(({ path }) => path === 'README.md')!;
  readonly #blocks = typescriptBlocks([this.#readme]);
  /** The files of the app, the program first. */
  readonly sources = ['main.ts', 'blocks.ts', 'database.ts', 'running.ts', ...this.#names('.ts')];

  constructor(private readonly app: ThrowAwayApp) {}

  /** The blocks that the program has to run, by their places in README.md. */
  get running(): readonly string[] {
    return this.#blocks.filter(({ runs }) => runs).map(({ place }) => place);
  }

  async write(): Promise<void> {
    await this.app.add('readme');
    for (const { file, source } of this.#blocks) {
      await this.app.write(file, source.replaceAll("'../../support/", "'./"));
    }
    const imports = this.#names('.js').map((file, index) => `import * as block${index} from './${file}';\n`);
    const entries = this.#blocks.map(({ place }, index) => `  '${place}': block${index},\n`);
    await this.app.write('blocks.ts', `${imports.join('')}export const blocks = {\n${entries.join('')}};\n`);
  }

  /** Replaces the address in the compiled README.md by another connection, or by the memory backend. */
  async connect(folder: string, options: string): Promise<void> {
    let found = 0;
    for (const name of this.#names('.js')) {
      const code = await this.app.read(`${folder}/${name}`);
      found += code.split(ADDRESS).length - 1;
      await this.app.write(`${folder}/${name}`, code.replaceAll(ADDRESS, options));
    }
    if (found === 0) throw new Error(`README.md does not say ${ADDRESS}`);
  }

  #names(extension: string): readonly string[] {
    return this.#blocks.map(({ file }) => file.replace(/\.ts$/, extension));
  }
}
