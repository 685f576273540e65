/**
 * Loads the code for delivery at the first `configure` or the first run, because this code takes as long to load as all
 * other code of the package. `require` loads the ES module synchronously, together with the modules that are already
 * loaded.
 *
 * A program that a bundler joins to one file has no file to load. Bundlers resolve `#delivery`, which the entries import,
 * to `loaded.node.ts`, which registers the code at the start.
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
  loaded.loadPartsBy(load);
  return loaded;
}
