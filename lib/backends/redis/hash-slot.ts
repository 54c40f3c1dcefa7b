/** CRC-16/XMODEM, the checksum with which a Redis Cluster maps keys to slots. */
const CRC_TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  return crc;
});

const SLOTS = 16_384;

/**
 * The cluster slot of a key, or of its hash tag if it has one.
 *
 * @see https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#hash-tags
 */
export function slotOf(key: string): number {
  const open = key.indexOf('{');
  const close = open < 0 ? -1 : key.indexOf('}', open + 1);
  return checksum(close > open + 1 ? key.slice(open + 1, close) : key) % SLOTS;
}

function checksum(text: string): number {
  let crc = 0;
  for (const byte of Buffer.from(text)) crc = ((crc << 8) & 0xffff) ^ CRC_TABLE[((crc >> 8) ^ byte) & 0xff];
  return crc;
}

const tags: string[] = [];
let nextNumber = 0;

/** A hash tag in this slot, the same one in every process: the first number that hashes to it. */
export function tagOf(slot: number): string {
  while (tags[slot] === undefined) {
    const tag = String(nextNumber++);
    tags[slotOf(tag)] ??= tag;
  }
  return tags[slot];
}
