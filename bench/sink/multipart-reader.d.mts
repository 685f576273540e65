import type { Arrivals } from './arrivals.mjs';

export function readParts(body: Buffer, arrivals: Arrivals): void;
