import type { Arrivals } from './sink/arrivals.mjs';

export function complaintOf(count: Arrivals['summary'], runs: number): string | undefined;
