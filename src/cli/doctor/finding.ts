import { visible } from '../../base/text.ts';
import { secretPatterns } from '../../payload/redaction/patterns.ts';

/** The result of one check in `runspan doctor`. */
export interface Finding {
  readonly level: 'ok' | 'warn' | 'fail';
  /** Name of the check, package or environment variable. */
  readonly check: string;
  readonly message: string;
  /** How to fix the problem. Set for warnings and failures. */
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

const CHECK_COLUMNS = 24;

export function findingLine({ level, check, message, advice }: Finding): string {
  const text = advice === undefined ? message : `${message}; ${advice}`;
  return visible(`${level.padEnd(4)}  ${check.padEnd(CHECK_COLUMNS)}  ${text}`);
}

/** Minimum length of a secret to mask. Shorter values may also occur in unrelated text. */
const SECRET_LENGTH_MIN = 6;

/** Masks the given secrets and any text that looks like a secret in the message, which may quote the service. */
export function withoutSecrets(finding: Finding, secrets: readonly string[]): Finding {
  let { message } = finding;
  for (const secret of secrets)
    if (secret.length >= SECRET_LENGTH_MIN) message = message.replaceAll(secret, '[hidden]');
  for (const pattern of secretPatterns) message = message.replace(new RegExp(pattern, `${pattern.flags}g`), '[hidden]');
  return { ...finding, message };
}
