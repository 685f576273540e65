import { visible } from '../../base/text.ts';

export interface Finding {
  readonly level: 'ok' | 'warn' | 'fail';
  /** Name of the check, package or environment variable. */
  readonly check: string;
  readonly message: string;
  /** How to fix the problem. Set for warnings and failures. */
  readonly advice?: string;
}

export function okFinding(check: string, message: string): Finding {
  return { level: 'ok', check, message };
}

export function warn(check: string, message: string, advice: string): Finding {
  return { level: 'warn', check, message, advice };
}

export function fail(check: string, message: string, advice: string): Finding {
  return { level: 'fail', check, message, advice };
}

const CHECK_COLUMNS = 24;

export function findingLine({ level, check, message, advice }: Finding): string {
  const text = advice === undefined ? message : `${message}; ${advice}`;
  return visible(`${level.padEnd(4)}  ${check.padEnd(CHECK_COLUMNS)}  ${text}`);
}
