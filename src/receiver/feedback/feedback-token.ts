import { randomUUID } from 'node:crypto';
import { isObject } from '../../base/options.ts';
import { shown } from '../../base/text.ts';
import { isoTimestamp, parseIsoTimestamp } from '../../run/time.ts';
import { Findings, type Location, Refusal } from '../refusal.ts';
import type { FeedbackToken } from './feedback.ts';
import { checkKey, uuidIn } from './feedback-fields.ts';

/** Tokens that one request makes. */
const TOKENS_MAX = 1_000;

const MINUTE_US = 60_000_000;
const HOUR_US = 60 * MINUTE_US;
const UNITS_US: Readonly<Record<string, number>> = { days: 24 * HOUR_US, hours: HOUR_US, minutes: MINUTE_US };
const EXPIRES_IN_US = 3 * HOUR_US;
/** Ten years. */
const EXPIRES_IN_US_MAX = 3_650 * 24 * HOUR_US;

/** The tokens that a request asks for: that of an object, or those of a list of objects. */
export function readTokens(body: unknown): FeedbackToken[] {
  const findings = new Findings();
  const given: readonly unknown[] = Array.isArray(body) ? body : [body];
  if (given.length > TOKENS_MAX) throw new Refusal(413, `The body asks for more than ${TOKENS_MAX} tokens`);
  const tokens = given.map((item, index) => {
    const loc = Array.isArray(body) ? ['body', index] : ['body'];
    if (!isObject(item)) throw new Refusal(400, 'The body is no JSON object, and no array of objects');
    return tokenOf(item, loc, findings);
  });
  findings.refuseIfAny();
  return tokens;
}

/** Whether a token counts no more. */
export function isExpired({ expires_at: at }: FeedbackToken): boolean {
  return Date.now() * 1_000 >= (parseIsoTimestamp(at) ?? 0);
}

function tokenOf(given: Record<string, unknown>, loc: Location, findings: Findings): FeedbackToken {
  const { run_id: run, feedback_key: key, id = null, feedback_config: config = null } = given;
  const runId = uuidIn(run, [...loc, 'run_id'], findings);
  checkKey(key, [...loc, 'feedback_key'], findings);
  if (config !== null && !isObject(config)) {
    findings.add([...loc, 'feedback_config'], 'type', 'Expected `feedback_config` to be an object');
  }
  return {
    id: randomUUID(),
    run_id: runId,
    feedback_key: String(key),
    feedback_id: id === null ? randomUUID() : uuidIn(id, [...loc, 'id'], findings),
    expires_at: isoTimestamp(expiryUs(given, loc, findings)),
  };
}

function expiryUs(
  { expires_at: at = null, expires_in: within = null }: Record<string, unknown>,
  loc: Location,
  findings: Findings,
): number {
  const nowUs = Date.now() * 1_000;
  if (at !== null) {
    const us = typeof at === 'string' ? parseIsoTimestamp(at) : undefined;
    if (within !== null) findings.add([...loc, 'expires_in'], 'mismatch', 'Give one of `expires_at` and `expires_in`');
    if (us !== undefined && us >= 0 && us <= nowUs + EXPIRES_IN_US_MAX) return us;
    findings.add(
      [...loc, 'expires_at'],
      'timestamp',
      `Expected \`expires_at\` to be an ISO 8601 time within ten years, got ${shown(at)}`,
    );
    return nowUs;
  }
  if (within === null) return nowUs + EXPIRES_IN_US;
  const us = durationUs(within);
  if (us !== undefined && us <= EXPIRES_IN_US_MAX) return nowUs + us;
  findings.add(
    [...loc, 'expires_in'],
    'duration',
    'Expected `expires_in` to be whole `days`, `hours` and `minutes`, ten years at most',
  );
  return nowUs;
}

function durationUs(value: unknown): number | undefined {
  if (!isObject(value)) return undefined;
  let sumUs = 0;
  for (const [unit, count] of Object.entries(value)) {
    const unitUs = Object.hasOwn(UNITS_US, unit) ? UNITS_US[unit] : undefined;
    if (unitUs === undefined || !Number.isSafeInteger(count) || (count as number) < 0) return undefined;
    sumUs += (count as number) * unitUs;
  }
  return sumUs;
}
