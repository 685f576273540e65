import type { RunRecord } from '../run/record.ts';

/**
 * How far a trace has come, as far as its runs tell:
 *
 * - `finished`: its root has ended, and so have all others.
 * - `ragged`: it may be all there will be, or not: the root has ended but a run below has not, or a parent has not come.
 * - `open`: a root has not ended.
 */
export type Progress = 'finished' | 'ragged' | 'open';

export function progressOf(runs: readonly RunRecord[]): Progress {
  const ids = new Set(runs.map(({ id }) => id));
  let isWhole = runs.length > 0;
  for (const { parent_run_id: parentId, end_time: endTime } of runs) {
    if (parentId === undefined && endTime === undefined) return 'open';
    if (endTime === undefined || (parentId !== undefined && !ids.has(parentId))) isWhole = false;
  }
  return isWhole ? 'finished' : 'ragged';
}
