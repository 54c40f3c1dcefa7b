/** How many digits of a permit's id identify its client. The rest is random and cannot be guessed. */
const CLIENT_DIGITS = 12;

/** The id of a new permit: 32 hexadecimal digits. Its beginning shows which client holds the permit. */
export function newPermitId(clientId: string, uuid: string): string {
  const digits = digitsOf(uuid);
  const client = clientDigits(clientId);
  return client === undefined ? digits : client + digits.slice(CLIENT_DIGITS);
}

/**
 * Whether a permit belongs to this client, by the beginning of its id. Permits of Redisson have random ids, which
 * belong to no client.
 */
export function isPermitOf(clientId: string, id: string): boolean {
  return clientDigits(clientId) === digitsInPermit(id);
}

/** Finds the client that holds a permit. Comparing each permit with each client would block the event loop. */
export class PermitHolders<Client extends { readonly clientId: string }> {
  private readonly byDigits = new Map<string, Client>();

  add(client: Client): void {
    const digits = clientDigits(client.clientId);
    if (digits !== undefined) this.byDigits.set(digits, client);
  }

  of(id: string): Client | undefined {
    return this.byDigits.get(digitsInPermit(id));
  }
}

/** Undefined if the client's id is not a UUID. */
function clientDigits(clientId: string): string | undefined {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-/.test(clientId) ? digitsOf(clientId).slice(0, CLIENT_DIGITS) : undefined;
}

function digitsInPermit(id: string): string {
  return id.slice(0, CLIENT_DIGITS);
}

function digitsOf(uuid: string): string {
  return uuid.replaceAll('-', '');
}
