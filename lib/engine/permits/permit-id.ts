/** How many digits of a permit's id are its client's: what is left is random, and cannot be guessed. */
const CLIENT_DIGITS = 12;

/** The id of a new permit: 32 hexadecimal digits. People who see its beginning can look up which client holds it. */
export function newPermitId(clientId: string, uuid: string): string {
  return digitsOf(clientId).slice(0, CLIENT_DIGITS) + digitsOf(uuid).slice(CLIENT_DIGITS);
}

/** Whether a permit belongs to this client, by the beginning of its id. Permits of Redisson belong to none. */
export function isPermitOf(clientId: string, id: string): boolean {
  return id.length >= CLIENT_DIGITS && digitsOf(clientId).startsWith(id.slice(0, CLIENT_DIGITS));
}

function digitsOf(uuid: string): string {
  return uuid.replaceAll('-', '');
}
