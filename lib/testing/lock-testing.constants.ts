/** Token of the LockTestingController of the LockTestingModule with this `name`. Without a name, inject it by its class. @publicApi */
export function getLockTestingToken(name: string): symbol {
  return Symbol.for(
    `nestjs-redis-lock: no LockTestingController here; import LockTestingModule.forRoot({ name: '${name}' })`,
  );
}
