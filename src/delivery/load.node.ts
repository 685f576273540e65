/**
 * Loads the code for delivery at the first `configure` or the first run, because this code is as large as all other code
 * that the import loads. `require` loads it synchronously and reuses the modules that are already loaded.
 *
 * A bundled program may have no file to load. Its `#delivery` is `bundled.node.ts`, which registers the code at the
 * start.
 */
import { nodeModule } from '../platform/node.ts';
import type * as delivery from './process-exporters.ts';

let loaded: typeof delivery | undefined;

export function registerDelivery(code: typeof delivery): void {
  loaded = code;
}

export function loadDelivery(): typeof delivery {
  if (loaded !== undefined) return loaded;
  // The banner of many bundled programs declares `createRequire`, so that an import of this name would fail.
  const load = nodeModule('node:module').createRequire(import.meta.url);
  loaded = load('./process-exporters.js') as typeof delivery;
  loaded.loadFilesBy(load);
  return loaded;
}
