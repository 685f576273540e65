import type { Fault } from './faults.mjs';

/** As much as is read of a report of vitest. */
export interface Report {
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly title: string; readonly status: string }[];
  }[];
}

export function faultOf(title: string): number | undefined;

export function complaintsOf(
  report: Report,
  faults: readonly Pick<Fault, 'number' | 'fault'>[],
  unproven: readonly number[],
): string[];
