type Row = Readonly<Record<string, unknown>>;

/** The rows of an answer: plain rows, `{ rows }` of pg, or `[rows, fields]` of mysql2. */
export function rowsOf(answer: unknown): readonly Row[] {
  if (Array.isArray(answer)) return Array.isArray(answer[0]) ? answer[0] : answer;
  return (answer as { readonly rows?: readonly Row[] } | undefined)?.rows ?? [];
}

/** Codes of a driver's error, which an ORM may have wrapped. */
export function codesOf(error: unknown): readonly unknown[] {
  const codes: unknown[] = [];
  for (let inner = error as Wrapped | undefined, depth = 0; inner && depth < 5; depth++) {
    codes.push(inner.code, inner.errno, inner.originalCode);
    const { driverError, parent, meta, driverAdapterError, cause } = inner;
    inner = driverError ?? parent ?? meta ?? driverAdapterError ?? cause;
  }
  return codes;
}

/** TypeORM has `driverError`, Sequelize `parent`, Prisma `meta` (with the codes, or with an adapter's error). */
interface Wrapped {
  readonly code?: unknown;
  readonly errno?: unknown;
  readonly originalCode?: unknown;
  readonly driverError?: Wrapped;
  readonly parent?: Wrapped;
  readonly meta?: Wrapped;
  readonly driverAdapterError?: Wrapped;
  readonly cause?: Wrapped;
}
