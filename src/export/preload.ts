import { setTimer } from '../base/timers.ts';
import { isOnByEnvironment } from './service-settings.ts';

/** Delay before the modules are loaded. A program that ends sooner never loads them. */
const DELAY_MS = 10;

let isLoading = false;

/**
 * Schedules loading of the modules needed for the first delivery. Their evaluation blocks the event loop for tens of
 * milliseconds, which should not happen during a request of the application. Never keeps the process alive.
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
