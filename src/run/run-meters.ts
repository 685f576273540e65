import { shared } from '../base/shared.ts';
import type { EncodedRun } from './encoded-run.ts';

/** What meters read of an ended run. Metadata values are JSON text. */
export type MeasuredRun = Readonly<
  Pick<EncodedRun, 'name' | 'runType' | 'metadata'> & Partial<Pick<EncodedRun, 'error' | 'events'>>
>;

/** Measures an ended run. Never throws. */
type RunMeter = (run: MeasuredRun, startUs: number, endUs: number) => void;

const meters: Set<RunMeter> = shared('runMeters', () => new Set());

/** Passes all runs that end from now on to `meter`. Returns a function that stops this. */
export function addRunMeter(meter: RunMeter): () => void {
  meters.add(meter);
  return () => void meters.delete(meter);
}

/** Whether ended runs are measured. A run that sampling leaves out then stays open, without content and hooks. */
export function areRunsMeasured(): boolean {
  return meters.size > 0;
}

export function measureRun(run: MeasuredRun, startUs: number, endUs: number): void {
  for (const meter of meters) meter(run, startUs, endUs);
}
