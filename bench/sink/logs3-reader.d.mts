import type { Arrivals } from './arrivals.mjs';

export function readRows(body: Buffer, arrivals: Arrivals): void;
