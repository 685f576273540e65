import fc from 'fast-check';
import { randomFrom } from '../faults/random.ts';

/**
 * A campaign is a test with many cases: generated ones, a long table, a large body, a wait for the garbage collector.
 * All campaigns import this file. `npm test` tries a tenth of their cases, and other ones each time. `.ci/run` tries all.
 *
 * - `CAMPAIGNS` is the part of the cases to try: `1` for all, `30` for the fuzz tests of `npm run test:fuzz`.
 * - `CAMPAIGN_SEED` chooses the cases. A run prints its seed, which repeats the run.
 */
const part = Number(process.env.CAMPAIGNS ?? 0.1);
export const seed: number = Number(process.env.CAMPAIGN_SEED ?? 0);

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed });

/**
 * The number of cases to try of `full` generated ones: for `numRuns`, loops and sizes. `known` are cases that once failed,
 * fast-check's `examples`. They are always tried, and fast-check counts them with the others.
 */
export function cases(full: number, known: readonly unknown[] = []): number {
  return known.length + Math.max(1, Math.round(part * full));
}

/** The rows of a table to try, one from each section of the table. */
export function sample<const Row>(rows: readonly Row[]): readonly Row[] {
  const count = Math.min(cases(rows.length), rows.length);
  const random = randomFrom(seed);
  const start = (section: number): number => Math.floor((section * rows.length) / count);
  return Array.from({ length: count }, (_, section) => {
    const length = start(section + 1) - start(section);
    return rows[start(section) + Math.floor(random() * length)] as Row;
  });
}
