import { OptionDefaults } from 'typedoc';

/** @type {Partial<import('typedoc').TypeDocOptions>} */
export default {
  name: 'nestjs-redis-lock',
  entryPoints: ['../lib/*.ts'],
  // programs, not something to import
  exclude: ['../lib/cli.ts', '../lib/thread.ts'],
  tsconfig: 'tsconfig.json',
  out: 'api',
  readme: '../README.md',
  projectDocuments: ['*.md'],
  modifierTags: [...OptionDefaults.modifierTags, '@publicApi'],
  excludeInternal: true,
  excludePrivate: true,
  excludeExternals: true,
  disableSources: true,
  validation: { notExported: false, invalidLink: true },
  highlightLanguages: ['typescript', 'javascript', 'bash', 'sql', 'java', 'json'],
  ignoredHighlightLanguages: ['acl', 'mermaid', 'text', 'promql', 'yaml'],
};
