import type { Arrivals } from './sink/arrivals.mjs';

export function complaintOf(count: Omit<Arrivals['summary'], 'payloadBytes'>, runs: number): string | undefined;

/** What it reads of a row. */
export interface SentBytes {
  readonly runs: number;
  readonly bodyBytesPerRun: number;
  readonly payloadBytesPerRun: number;
  readonly complaint?: string | undefined;
}

export function shortfallOf(
  row: Pick<SentBytes, 'runs' | 'bodyBytesPerRun'>,
  limit: SentBytes | undefined,
): string | undefined;
