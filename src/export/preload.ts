import { setTimer } from '../base/timers.ts';
import { isOnByEnvironment } from './service-settings.ts';

/** A program that ends within this time never loads the modules. */
const DELAY_MS = 10;

let isLoading = false;

/**
 * Loads the modules of the first request soon, outside of any request of the application: their evaluation blocks the event
 * loop for tens of milliseconds. Never keeps the process alive.
 */
export function preloadSoon(): void {
  if (isLoading) return;
  isLoading = true;
  setTimer(() => {
    void Promise.allSettled([import('undici'), import('p-queue'), import('form-data-encoder')]);
  }, DELAY_MS).unref();
}

/** Called by the wrappers of SDKs. */
export function preloadIfConfigured(): void {
  if (!isLoading && isOnByEnvironment()) preloadSoon();
}
