import { setMaxListeners } from 'node:events';

/** The controller of a lease's signal. Each step of a body may listen to it, so many listeners are no leak. */
export function leaseController(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}
