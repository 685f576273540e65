import type { Check } from '../../config/checker.ts';
import type { EncodedRun } from '../encoded-run.ts';
import type { EndedTrace, KeepRules } from '../sink.ts';

/**
 * A rule for traces to send although the sample rate drops them. `error` selects traces with a failed run. `slow>10s`
 * selects traces whose first run in this process takes longer than that, in `ms`, `s` or `min`. A function selects the
 * traces for which it returns true. It is called when the first run ends, unless another rule has selected the trace.
 */
export type KeepRule = 'error' | `slow>${number}${'ms' | 's' | 'min'}` | ((trace: EndedTrace) => boolean);

const SLOW = /^slow>(\d+(?:\.\d+)?)(ms|s|min)$/;
const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, min: 60_000 };

export const keepCheck: Check = [
  "a list of rules such as 'error' and 'slow>10s'",
  (value) => Array.isArray(value) && value.every(isRule),
];

function isRule(rule: unknown): boolean {
  return rule === 'error' || typeof rule === 'function' || (typeof rule === 'string' && SLOW.test(rule));
}

/** Returns undefined if there is no rule. */
export function keepRules(rules: readonly KeepRule[]): KeepRules | undefined {
  if (rules.length === 0) return undefined;
  return {
    onError: rules.includes('error'),
    slowMs: Math.min(...rules.map(slowMsIn)),
    functions: rules.filter((rule) => typeof rule === 'function'),
  };
}

function slowMsIn(rule: KeepRule): number {
  const [, count, unit = ''] = (typeof rule === 'string' && SLOW.exec(rule)) || [];
  return count === undefined ? Number.POSITIVE_INFINITY : Number(count) * (UNIT_MS[unit] as number);
}

/** Whether an ended run has failed. Cancelled and interrupted runs have an error, but have not failed. */
export function hasFailed({ error, endReason }: EncodedRun): boolean {
  return error !== undefined && error !== '' && endReason === undefined;
}
