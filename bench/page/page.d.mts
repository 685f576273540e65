import type { Results } from './compact.mjs';

/** Every generated file by its path within `docs/`. */
export function filesOf(results: Results): Record<string, string>;
