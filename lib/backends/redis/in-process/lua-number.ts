/** `%.14g`, as Lua writes a number into a text. */
export function numberInText(value: number): string {
  return withDigits(value, 14);
}

/** As Redis writes a number that a script passes to a command: `%.17g`. */
export function numberAsArgument(value: number): string {
  return withDigits(value, 17);
}

/** `%.<digits>g` of C. */
function withDigits(value: number, digits: number): string {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  if (Number.isInteger(value) && Math.abs(value) < 1e14) return Object.is(value, -0) ? '-0' : String(value);
  const [mantissa, exponent] = value.toExponential(digits - 1).split('e') as [string, string];
  const power = Number(exponent);
  if (power < -4 || power >= digits) {
    const sign = power < 0 ? '-' : '+';
    return `${withoutZeros(mantissa)}e${sign}${String(Math.abs(power)).padStart(2, '0')}`;
  }
  return withoutZeros(value.toFixed(digits - 1 - power));
}

function withoutZeros(digits: string): string {
  return digits.includes('.') ? digits.replace(/\.?0+$/, '') : digits;
}

const NUMERAL = /^[ \t-\r]*[-+]?(?:0x[\da-f]+|(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)[ \t-\r]*$/i;
const WORD = /^[ \t-\r]*([-+]?)(inf(?:inity)?|nan)[ \t-\r]*$/i;

/** The number that a text is, as strtod() reads it; undefined for any other text. */
export function numberOf(text: string): number | undefined {
  if (NUMERAL.test(text)) return hexadecimal(text) ?? Number(text);
  const word = WORD.exec(text);
  if (word === null) return undefined;
  if (word[2]?.toLowerCase() === 'nan') return Number.NaN;
  return word[1] === '-' ? -Infinity : Infinity;
}

function hexadecimal(text: string): number | undefined {
  const digits = /([-+]?)(0x[\da-f]+)/i.exec(text);
  return digits === null ? undefined : Number(digits[2]) * (digits[1] === '-' ? -1 : 1);
}

/** A number that 64 bits cannot hold is the lowest one that they can, as C converts it. */
export function toLong(value: number): number {
  return Math.abs(value) < 2 ** 63 ? Math.trunc(value) : -(2 ** 63);
}
