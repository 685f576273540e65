import { bare } from './bare.ts';
import { RunspanError } from './errors.ts';
import { shown } from './text.ts';

/** What an option has to be, in words and as a test; of a secret the error does not show what was given. */
export type Check = readonly [expected: string, holds: (value: unknown) => boolean, kind?: 'secret'];

/** A check for each option there is. */
export type Checks<Options> = { readonly [Key in keyof Options]-?: Check };

/** For limits and counts. */
export const WHOLE_FROM_1: Check = [
  'a whole number from 1',
  (value) => Number.isSafeInteger(value) && (value as number) >= 1,
];

/** For ports, statuses and the like. */
export function wholeFrom(least: number, most: number): Check {
  return [
    `a whole number from ${least} to ${most}`,
    (value) => Number.isInteger(value) && (value as number) >= least && (value as number) <= most,
  ];
}

/**
 * A copy of the options that leaves out those that are undefined, as if they were not there. A RunspanError names the
 * first that is unknown or does not hold. `what` is their name in its messages.
 */
export function checkedOptions<Options extends object>(
  what: string,
  options: unknown,
  checks: Checks<Options>,
): Partial<Options> {
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    // A key is passed in their place by mistake.
    throw invalid(`Expected ${what} to be an object, got ${typeof options === 'string' ? 'text' : shown(options)}`);
  const checked: Record<string, unknown> = bare<Record<string, unknown>>({});
  for (const [key, value] of Object.entries(options)) {
    if (!Object.hasOwn(checks, key)) {
      throw invalid(`Expected ${what} to have no more than ${Object.keys(checks).join(', ')}, got \`${key}\``);
    }
    if (value === undefined) continue;
    const [expected, holds, kind] = checks[key as keyof Options];
    if (!holds(value)) {
      const got = kind === 'secret' && typeof value === 'string' ? 'another text' : shown(value);
      throw invalid(`Expected \`${key}\` to be ${expected}, got ${got}`);
    }
    checked[key] = value;
  }
  return checked as Partial<Options>;
}

function invalid(message: string): RunspanError {
  return new RunspanError('RUNSPAN_INVALID_OPTION', message);
}
