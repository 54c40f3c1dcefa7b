// Prints the findings of publint and arethetypeswrong about a packed library.
import { readFileSync } from 'node:fs';
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';

const tarball = readFileSync(process.argv[2]);
const bytes = tarball.buffer.slice(tarball.byteOffset, tarball.byteOffset + tarball.byteLength);
const { messages, pkg } = await publint({ pack: { tarball: bytes } });
const types = await checkPackage(createPackageFromTarballData(new Uint8Array(bytes)));

process.stdout.write(
  JSON.stringify({
    publint: messages.map((message) => formatMessage(message, pkg)),
    types: types.types === false ? ['there are no types'] : types.problems,
    entries: Object.keys(types.entrypoints ?? {}),
  }),
);
