import { RequestMethod, type Type } from '@nestjs/common';
import type { Settings } from './idempotent.options.js';
import { isNearest, METHOD, methodsIn } from './refuse-handlers.js';

/** The keys of @nestjs/swagger's metadata. It is not loaded: without it, nobody reads them. */
const PARAMETERS = 'swagger/apiParameters';
const RESPONSES = 'swagger/apiResponse';
/** What its compiler plugin has found out about the methods of a class. */
const OF_PLUGIN = '_OPENAPI_METADATA_FACTORY';
const HTTP_CODE = '__httpCode__';

const ANSWERS = {
  400: { description: 'The header with the key is missing or malformed.' },
  409: { description: 'The first request with this key is still running, or its answer was not kept.' },
  422: { description: 'The key was used for another request.' },
};

interface Parameter {
  readonly in: string;
  readonly name?: string;
}

/**
 * Describes the header and the answers in the OpenAPI document. What the application says about them stays. It is called
 * after all decorators, and before the document is made.
 */
export function describeInOpenApi(interceptor: object, target: Type, settings: Settings): void {
  for (const [name, handler] of methodsIn(target.prototype)) {
    if (!isNearest(interceptor, handler, target) || !Reflect.hasMetadata(METHOD, handler)) continue;
    const parameters: readonly Parameter[] = Reflect.getMetadata(PARAMETERS, handler) ?? [];
    if (!parameters.some((one) => isHeader(one, settings.header)))
      Reflect.defineMetadata(PARAMETERS, [...parameters, keyHeader(settings)], handler);
    const responses = Reflect.getMetadata(RESPONSES, handler) ?? defaultResponse(target, name, handler);
    Reflect.defineMetadata(RESPONSES, { ...ANSWERS, ...responses }, handler);
  }
}

function isHeader(parameter: Parameter, name: string): boolean {
  return parameter.in === 'header' && parameter.name?.toLowerCase() === name.toLowerCase();
}

function keyHeader({ header, required }: Settings): Parameter & Record<string, unknown> {
  return {
    name: header,
    in: 'header',
    description: 'A new key for each request, and the same key for its repetitions.',
    required,
    schema: { type: 'string', minLength: 8, maxLength: 255 },
  };
}

/** What @nestjs/swagger shows for a handler of which no response is described. */
function defaultResponse(target: Type, name: string, handler: object): object {
  const factory = (target as unknown as Record<string, (() => Record<string, Described>) | undefined>)[OF_PLUGIN];
  const { status, type, summary, deprecated, tags, ...others } = factory?.()[name] ?? {};
  const isPost = Reflect.getMetadata(METHOD, handler) === RequestMethod.POST;
  const code = status ?? Reflect.getMetadata(HTTP_CODE, handler) ?? (isPost ? 201 : 200);
  const isArray = Array.isArray(type);
  return { [code]: { description: '', ...others, type: isArray ? type[0] : type, ...(isArray && { isArray }) } };
}

interface Described {
  readonly status?: number;
  readonly type?: unknown;
  readonly summary?: unknown;
  readonly deprecated?: unknown;
  readonly tags?: unknown;
}
