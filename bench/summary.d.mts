import type { Row } from './page/compact.mjs';

/** The figures of a round, by driver. */
export type Round = Readonly<
  Record<
    string,
    { readonly cpuUsPerRun?: number; readonly runsPerSecond?: number | undefined; readonly complaint?: string }
  >
>;

export function summarize(names: readonly string[], rounds: readonly Round[]): Row[];
