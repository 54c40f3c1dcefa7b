/** Control and formatting characters, which could rewrite the screen or reverse a line. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/** Text from Redis or from the command line, safe to show in a terminal on one line. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

/** A JSON document that is safe to show in a terminal. */
export function printableJson(value: unknown): string {
  const text = JSON.stringify(value, undefined, 2);
  return text.replace(UNPRINTABLE, (character) => (character === '\n' ? character : escapeUnits(character)));
}

function escapeUnits(character: string): string {
  return character
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');
}
