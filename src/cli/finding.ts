import { visible } from '../base/text.ts';
import { secretPatterns } from '../payload/secret-patterns.ts';

/** What one check of `runspan doctor` has found. */
export interface Finding {
  readonly level: 'ok' | 'warn' | 'fail';
  /** What was looked at, in a word or the name of a variable. */
  readonly check: string;
  readonly message: string;
  /** What to do, unless it is well. */
  readonly advice?: string;
}

export function ok(check: string, message: string): Finding {
  return { level: 'ok', check, message };
}

export function warn(check: string, message: string, advice: string): Finding {
  return { level: 'warn', check, message, advice };
}

export function fail(check: string, message: string, advice: string): Finding {
  return { level: 'fail', check, message, advice };
}

/** Columns of the longest name of a check. */
const CHECK_COLUMNS = 31;

/** A finding on a line. */
export function findingLine({ level, check, message, advice }: Finding): string {
  const told = advice === undefined ? message : `${message}; ${advice}`;
  return visible(`${level.padEnd(4)}  ${check.padEnd(CHECK_COLUMNS)}  ${told}`);
}

/** Shorter values stand in any text by chance. */
const SECRET_LENGTH_MIN = 6;

/** The finding without these values, and without what looks like a secret: whatever led to it, it is not repeated. */
export function cleared(finding: Finding, secrets: readonly string[]): Finding {
  const hidden = (text: string): string => {
    let told = text;
    for (const secret of secrets) if (secret.length >= SECRET_LENGTH_MIN) told = told.replaceAll(secret, '[hidden]');
    for (const pattern of secretPatterns) told = told.replace(new RegExp(pattern, `${pattern.flags}g`), '[hidden]');
    return told;
  };
  return {
    ...finding,
    message: hidden(finding.message),
    ...(finding.advice !== undefined && { advice: hidden(finding.advice) }),
  };
}
