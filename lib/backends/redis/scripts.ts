import { createHash } from 'node:crypto';
import { SCRIPT_SOURCES } from './scripts.generated.js';

/** A Lua script; Redis knows it by the checksum once it has seen its source. */
export interface Script {
  readonly source: string;
  readonly sha1: string;
}

export type ScriptName = keyof typeof SCRIPT_SOURCES;

/** Every file of scripts/, by its name. */
export const scripts = Object.fromEntries(
  Object.entries(SCRIPT_SOURCES).map(([name, source]) => [
    name,
    { source, sha1: createHash('sha1').update(source).digest('hex') },
  ]),
) as Record<ScriptName, Script>;
