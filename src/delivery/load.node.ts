/**
 * Loads the code for delivery at the first `configure` or the first run, because this code is as large as all other code
 * that the import loads. `require` loads it synchronously and reuses the modules that are already loaded.
 *
 * A bundled program may have no file to load. Its `#delivery` is `bundled.node.ts`, which registers the code at the
 * start.
 */
import { monotonicNowMs } from '../base/clock.ts';
import { nodeModule } from '../platform/node.ts';
import type * as delivery from './process-exporters.ts';

const RETRY_MS = 1_000;

let loaded: typeof delivery | undefined;
let triesAgainAtMs = Number.NEGATIVE_INFINITY;

export function registerDelivery(code: typeof delivery): void {
  loaded = code;
}

/** Throws if the code cannot be loaded. Returns undefined for a second after that, because the next run tries again. */
export function loadDelivery(): typeof delivery | undefined {
  if (loaded !== undefined || monotonicNowMs() < triesAgainAtMs) return loaded;
  try {
    // The banner of many bundled programs declares `createRequire`, so that an import of this name would fail.
    const load = nodeModule('node:module').createRequire(import.meta.url);
    loaded = load('./process-exporters.js') as typeof delivery;
    loaded.loadFilesBy(load);
    return loaded;
  } catch (thrown) {
    triesAgainAtMs = monotonicNowMs() + RETRY_MS;
    throw thrown;
  }
}
