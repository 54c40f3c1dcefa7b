import type { Settings } from './idempotent.options.js';

/** The keys of @nestjs/swagger's metadata. It is not loaded: without it, nobody reads them. */
const PARAMETERS = 'swagger/apiParameters';
const RESPONSES = 'swagger/apiResponse';

const ANSWERS = {
  400: { description: 'The header with the key is missing or malformed.' },
  409: { description: 'The first request with this key is still running, or its answer was not kept.' },
  422: { description: 'The key was used for another request.' },
};

interface Parameter {
  readonly in: string;
  readonly name?: string;
}

/** Describes the header and the answers in the OpenAPI document. What the application says about them stays. */
export function describeInOpenApi(handler: object, { header, required }: Settings): void {
  const parameters: readonly Parameter[] = Reflect.getMetadata(PARAMETERS, handler) ?? [];
  const isKnown = parameters.some((one) => one.in === 'header' && one.name?.toLowerCase() === header.toLowerCase());
  const key = {
    name: header,
    in: 'header',
    description: 'A new key for each request, and the same key for its repetitions.',
    required,
    schema: { type: 'string', minLength: 8, maxLength: 255 },
  };
  if (!isKnown) Reflect.defineMetadata(PARAMETERS, [...parameters, key], handler);
  Reflect.defineMetadata(RESPONSES, { ...ANSWERS, ...Reflect.getMetadata(RESPONSES, handler) }, handler);
}
