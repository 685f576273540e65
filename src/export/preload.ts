import { setTimer } from '../base/timers.ts';
import { isOnByEnvironment } from './service-settings.ts';

/** Delay before the modules are loaded. A program that ends sooner never loads them. */
const DELAY_MS = 10;

let isLoading = false;

/**
 * Schedules loading of the modules needed for the first delivery. Evaluating these modules blocks the event loop for
 * tens of milliseconds. This should not happen while the application handles a request. Never keeps the process alive.
 */
export function preloadSoon(): void {
  if (isLoading) return;
  isLoading = true;
  setTimer(() => {
    void Promise.allSettled([import('undici'), import('p-queue'), import('form-data-encoder')]);
  }, DELAY_MS).unref();
}

/** Preloads the modules if the environment turns tracing on. Called by the SDK wrappers. */
export function preloadIfConfigured(): void {
  if (!isLoading && isOnByEnvironment()) preloadSoon();
}
