import { env } from '../base/env.ts';
import { setTimer } from '../base/timers.ts';

/** Time for a program to end that has nothing else to do: it needs none of the modules. */
const DELAY_MS = 10;

let isLoading = false;
let isAsked = false;

/**
 * Loads the modules that the first requests need soon, outside of any request of the application: their
 * evaluation blocks the event loop for tens of milliseconds. Never keeps the process alive.
 */
export function preloadSoon(): void {
  if (isLoading) return;
  isLoading = true;
  setTimer(() => {
    void Promise.allSettled([import('undici'), import('p-queue'), import('form-data-encoder')]);
  }, DELAY_MS).unref();
}

/** Does so if the environment turns tracing on, without reading any setting: the first traced call does that. */
export function preloadSoonIfConfigured(): void {
  if (isAsked) return;
  isAsked = true;
  setTimer(() => {
    const isOff = env('RUNSPAN_TRACING') === 'false';
    const isOn = env('RUNSPAN_ENDPOINT') ?? env('LANGSMITH_TRACING') ?? env('LANGCHAIN_TRACING_V2');
    if (isOn !== undefined && !isOff) preloadSoon();
  }, DELAY_MS).unref();
}
