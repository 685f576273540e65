import type { Arrivals } from './arrivals.mjs';

export function readJsonSpans(body: Buffer, arrivals: Arrivals): void;
export function readProtobufSpans(body: Buffer, arrivals: Arrivals): void;
