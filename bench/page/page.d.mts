import type { Results } from './compact.mjs';

export function pageOf(results: Results): string;
