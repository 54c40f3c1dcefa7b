/**
 * Where the application called the library, for warnings: `OrdersService.pay (/app/dist/orders.service.js:12:5)`, the
 * first place on the stack that is outside. Undefined if the stack has none, as where a bundler has put everything into
 * one file, or where a promise was passed on without `await`.
 */
export function callSite(): string | undefined {
  const [, here = '', ...frames] = new Error().stack?.split('\n') ?? [];
  const library = LIBRARY.exec(here)?.[1];
  if (library === undefined) return undefined;
  const isOutside = (frame: string) => !frame.includes(library) && !frame.includes('node:') && PLACE.test(frame);
  return frames.find(isOutside)?.replace(/^\s*at (?:async )?/, '');
}

/** The folder of the library, from the place of this file. */
const LIBRARY = /\(?([^\s(]*[\\/])engine[\\/]events[\\/]call-site\.[cm]?[jt]s:/;
const PLACE = /:\d+:\d+\)?$/;
