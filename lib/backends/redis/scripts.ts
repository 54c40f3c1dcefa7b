import { createHash } from 'node:crypto';
import { SCRIPT_SOURCES } from './scripts.generated.js';

/** A Lua script. Once Redis has seen its source, it knows the script by its checksum. */
export interface Script {
  readonly source: string;
  readonly sha1: string;
}

export type ScriptName = keyof typeof SCRIPT_SOURCES;

/** Every script below scripts/, by its file name. */
export const scripts = Object.fromEntries(
  Object.entries(SCRIPT_SOURCES).map(([name, source]) => [
    name,
    { source, sha1: createHash('sha1').update(source).digest('hex') },
  ]),
) as Record<ScriptName, Script>;
