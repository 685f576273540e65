import type { Row } from './page/compact.mjs';

/** What a driver has measured in a round, by driver. */
export type Round = Readonly<Record<string, { readonly cpuUsPerRun?: number; readonly complaint?: string }>>;

export function summarize(names: readonly string[], rounds: readonly Round[]): Row[];
export function ratioBetween(name: string, other: string, rounds: readonly Round[], figure: string): number | undefined;
