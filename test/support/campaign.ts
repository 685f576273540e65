import { createHash } from 'node:crypto';
import { relative } from 'node:path';
import fc from 'fast-check';
import { expect } from 'vitest';
import { randomFrom } from '../faults/random.ts';
import { root } from './folders.ts';

/**
 * A campaign is a test with many cases: generated ones, a long table, a large body, a wait for the garbage collector.
 * All campaigns import this file. `npm test` tries a tenth of their cases, and `.ci/run` tries all, the same ones in every
 * run. `npm run test:fuzz` tries other ones. A failing case that it finds joins the known ones of its campaign.
 *
 * - `CAMPAIGNS` is the part of the cases to try: `1` for all.
 * - `CAMPAIGN_SEED` chooses the cases. Without it, the name of the test file does.
 */
const part = Number(process.env.CAMPAIGNS ?? 0.1);

/** Depends on the name of the test file below the repository, and on nothing else that differs between two machines. */
export function seed(): number {
  const given = process.env.CAMPAIGN_SEED;
  if (given !== undefined) return Number(given);
  const name = relative(root, expect.getState().testPath ?? '');
  return createHash('sha256').update(name).digest().readUInt32BE() % 1_000_000;
}

/**
 * The number of cases to try of `full` generated ones: for `numRuns`, loops and sizes. `known` are cases that once failed,
 * fast-check's `examples`. They are always tried, and fast-check counts them with the others.
 */
export function cases(full: number, known: readonly unknown[] = []): number {
  return known.length + Math.max(1, Math.round(part * full));
}

type Arbitraries<Values> = { readonly [Index in keyof Values]: fc.Arbitrary<Values[Index]> };

/** Checks a property with values of the arbitraries, in `cases(full)` generated cases. */
export function forAll<Values extends [unknown, ...unknown[]]>(
  full: number,
  arbitraries: Arbitraries<Values>,
  check: (...values: Values) => void,
): void {
  fc.assert(fc.property<Values>(...arbitraries, check), { numRuns: cases(full) });
}

/** Like `forAll`, for a property that awaits something. */
export function forAllAsync<Values extends [unknown, ...unknown[]]>(
  full: number,
  arbitraries: Arbitraries<Values>,
  check: (...values: Values) => Promise<void>,
): Promise<void> {
  return fc.assert(fc.asyncProperty<Values>(...arbitraries, check), { numRuns: cases(full) });
}

/** The rows of a table to try, one from each section of the table. */
export function sample<const Row>(rows: readonly Row[]): readonly Row[] {
  const count = Math.min(cases(rows.length), rows.length);
  const random = randomFrom(seed());
  const start = (section: number): number => Math.floor((section * rows.length) / count);
  return Array.from({ length: count }, (_, section) => {
    const length = start(section + 1) - start(section);
    return rows[start(section) + Math.floor(random() * length)] as Row;
  });
}
