import { randomUUID } from 'node:crypto';
import * as v from 'valibot';
import { ignoreErrors } from '../../base/guard.ts';
import { isFields, numberOf } from '../../payload/fields.ts';
import { isoTimestamp, parseIsoTimestamp } from '../../run/time.ts';
import { type Feedback, type FeedbackToken, hasContent } from '../domain/feedback.ts';
import { parseNumber } from '../filter/values.ts';
import { HttpError, type Location, ValidationIssues } from './http-error.ts';
import { JsonReader } from './json.ts';
import { uuidSchema } from './run-fields.ts';
import {
  checkKnownFields,
  object,
  parsed,
  refuseUnknownParameters,
  requiredObject,
  text,
  validate,
  validated,
  withoutNulls,
} from './validation.ts';

type FeedbackInput = Pick<Feedback, 'score' | 'value' | 'comment' | 'correction' | 'metadata'>;

export const FEEDBACK_BYTES_MAX: number = 1024 * 1024;
const REQUEST_TOKENS_MAX = 1_000;
const KEY_LENGTH_MAX = 180;

const finite = v.custom<number>((value) => numberOf(value) !== undefined, 'a number');
const boolean = v.boolean();
const id = uuidSchema(true);
const KEY = `a string of 1 to ${KEY_LENGTH_MAX} characters`;
const key = v.pipe(v.string(KEY), v.minLength(1, KEY), v.maxLength(KEY_LENGTH_MAX, KEY));

const INPUT = {
  score: v.nullish(v.union([finite, boolean], 'a number, true or false')),
  value: v.nullish(v.union([text, finite, boolean, object], 'a string, a number, true, false or an object')),
  comment: v.nullish(text),
  correction: v.nullish(v.union([object, text], 'an object or a string')),
  metadata: v.nullish(object),
};
const inputSchema = v.object(INPUT);
const strictInputSchema = v.object({
  score: v.optional(finite),
  value: v.optional(INPUT.value.wrapped),
  comment: v.optional(text),
  correction: v.optional(object),
  metadata: v.optional(object),
});
const feedbackSchema = v.object({ run_id: id, key, id: v.nullish(id), ...INPUT });

/** Throws an HTTP 400 error if the body is not an object, or a 422 error if a field is invalid. */
export function readFeedbackInput(body: unknown, strict: boolean): FeedbackInput {
  return checkedInput(requiredObject(body, ['body']), strict, ['body']);
}

const QUERY_FIELDS: readonly string[] = ['score', 'value', 'comment', 'correction'];

/**
 * Validates the feedback fields in a query string. All values are text, and `correction` may be JSON text. Unless the
 * receiver is strict, ignores unknown parameters, because mail services add parameters to links. Throws an HTTP 422 error
 * for a link without content, or with a misspelled parameter only: it must not erase earlier feedback.
 */
export function readFeedbackQuery(search: URLSearchParams, strict: boolean): FeedbackInput {
  const parameters = [...search].filter(([name]) => QUERY_FIELDS.includes(name));
  if (strict || parameters.length === 0) refuseUnknownParameters(search, QUERY_FIELDS);
  const given = parameters.map(([field, value]) => {
    return [field, field === 'score' ? scoreOf(value) : field === 'correction' ? correctionOf(value) : value];
  });
  return requireContent(checkedInput(Object.fromEntries(given), strict, ['query']), ['query']);
}

function checkedInput(given: object, strict: boolean, loc: Location): FeedbackInput {
  const issues = new ValidationIssues();
  if (strict) checkKnownFields(strictInputSchema, given, loc, issues);
  const input = validate(strict ? strictInputSchema : inputSchema, given, loc, issues);
  issues.throwIfAny();
  return withoutNulls(input ?? {}) as FeedbackInput;
}

/** Validates feedback that replaces earlier feedback. `score: null` withdraws it, and needs no content. */
export function readRating(value: unknown, strict: boolean): FeedbackInput {
  const input = readFeedbackInput(value, strict);
  return isFields(value) && value.score === null ? input : requireContent(input);
}

/** Returns the feedback. Throws an HTTP 422 error if it has no content, because it would erase earlier feedback. */
export function requireContent<Input extends FeedbackInput>(input: Input, loc: Location = ['body']): Input {
  if (hasContent(input)) return input;
  const msg = 'Send a `score`, `value`, `comment`, `correction` or `metadata`: without content, nothing is stored';
  throw new HttpError(422, [{ loc, msg, type: 'missing' }]);
}

/** Throws an HTTP 400 error if the value is not an object, or a 422 error if a field is invalid. */
export function feedbackOfBody(value: unknown, loc: Location): Feedback {
  const given = validated(feedbackSchema, requiredObject(value, loc), loc);
  const { run_id: runId, key: ownKey, id: ownId, ...fields } = given;
  return feedbackOf(withoutNulls(fields) as FeedbackInput, runId, ownKey, ownId ?? randomUUID());
}

export function feedbackOf(input: FeedbackInput, runId: string, ownKey: string, ownId: string): Feedback {
  const now = isoTimestamp(Date.now() * 1_000);
  return { id: ownId, run_id: runId, key: ownKey, ...input, created_at: now, modified_at: now };
}

function scoreOf(value: string): unknown {
  if (value === 'true' || value === 'false') return value === 'true';
  return parseNumber(value) ?? value;
}

/** Parses a JSON object or a JSON string. Returns any other text unchanged. */
function correctionOf(value: string): unknown {
  const json = ignoreErrors(() => new JsonReader().parse(Buffer.from(value), 'It').value);
  return isFields(json) || typeof json === 'string' ? json : value;
}

const MINUTE_US = 60_000_000;
const DAY_US = 1_440 * MINUTE_US;
const UNITS_US: Readonly<Record<string, number>> = { days: DAY_US, hours: 60 * MINUTE_US, minutes: MINUTE_US };
const EXPIRES_IN_US = 180 * MINUTE_US;
/** Maximum lifetime of a feedback token: ten years. */
const EXPIRES_IN_US_MAX = 3_650 * DAY_US;

const tokenSchema = v.pipe(
  v.object({
    run_id: id,
    feedback_key: key,
    id: v.nullish(id),
    feedback_config: v.nullish(object),
    expires_at: v.nullish(parsed('a future ISO 8601 time within ten years', parseExpiry)),
    expires_in: v.nullish(parsed('whole `days`, `hours` and `minutes` within ten years', parseDuration)),
  }),
  v.forward(
    v.check(({ expires_at: at, expires_in: within }) => at == null || within == null, 'absent if `expires_at` is set'),
    ['expires_in'],
  ),
);

export function readTokens(body: unknown, tenant: string): FeedbackToken[] {
  if (!Array.isArray(body)) return [readToken(body, tenant, ['body'])];
  if (body.length > REQUEST_TOKENS_MAX)
    throw new HttpError(413, `The body contains more than ${REQUEST_TOKENS_MAX} tokens`);
  return body.map((item, index) => readToken(item, tenant, ['body', index]));
}

function readToken(value: unknown, tenant: string, loc: Location): FeedbackToken {
  const input = validated(tokenSchema, requiredObject(value, loc), loc);
  const nowMs = Date.now();
  return {
    tenant,
    id: randomUUID(),
    run_id: input.run_id,
    feedback_key: input.feedback_key,
    feedback_id: input.id ?? randomUUID(),
    created_ms: nowMs,
    expires_at: isoTimestamp(input.expires_at ?? nowMs * 1_000 + (input.expires_in ?? EXPIRES_IN_US)),
  };
}

export function isExpired({ expires_at: at }: FeedbackToken): boolean {
  return Date.now() * 1_000 >= (parseIsoTimestamp(at) ?? 0);
}

function parseExpiry(value: unknown): number | undefined {
  const us = typeof value === 'string' ? parseIsoTimestamp(value) : undefined;
  const nowUs = Date.now() * 1_000;
  return us !== undefined && us > nowUs && us <= nowUs + EXPIRES_IN_US_MAX ? us : undefined;
}

function parseDuration(value: unknown): number | undefined {
  if (!isFields(value)) return undefined;
  let sumUs = 0;
  for (const [unit, count] of Object.entries(value)) {
    const unitUs = Object.hasOwn(UNITS_US, unit) ? UNITS_US[unit] : undefined;
    if (unitUs === undefined || !Number.isSafeInteger(count) || (count as number) < 0) return undefined;
    sumUs += (count as number) * unitUs;
  }
  return sumUs <= EXPIRES_IN_US_MAX ? sumUs : undefined;
}
