import { randomUUID } from 'node:crypto';
import { isObject } from '../../base/options.ts';
import { shown } from '../../base/text.ts';
import { isoTimestamp } from '../../run/time.ts';
import { JsonReader } from '../ingest/json.ts';
import { parseUuid } from '../ingest/run-fields.ts';
import { Findings, type Location, Refusal } from '../refusal.ts';
import type { Feedback } from './feedback.ts';

/** What somebody says of a run, whichever way it comes. */
export type Said = Pick<Feedback, 'score' | 'value' | 'comment' | 'correction' | 'metadata'>;

/** Maximum size of feedback as JSON. */
export const FEEDBACK_BYTES_MAX: number = 1024 * 1024;
/** Maximum length of a key in characters. */
const KEY_LENGTH_MAX = 180;

/** What a field has to be, in words and as a test. */
type Rule = readonly [expected: string, holds: (value: unknown) => boolean];

const isText = (value: unknown): boolean => typeof value === 'string';
/** JSON has no number that is not finite, a query of an address may name one. */
const isNumber = (value: unknown): boolean => Number.isFinite(value);
const isTruth = (value: unknown): boolean => typeof value === 'boolean';

/** The field's; where the interface has less, that follows for strict mode. */
const RULES: Readonly<Record<keyof Said, readonly [Rule, Rule?]>> = {
  score: [
    ['a number, true or false', (value) => isNumber(value) || isTruth(value)],
    ['a number', isNumber],
  ],
  value: [['text, a number, true, false or an object', (v) => isText(v) || isNumber(v) || isTruth(v) || isObject(v)]],
  comment: [['text', isText]],
  correction: [
    ['an object or text', (value) => isObject(value) || isText(value)],
    ['an object', isObject],
  ],
  metadata: [['an object', isObject]],
};

/** What a body of JSON says: 400 for what is no object, 422 for fields that do not hold. */
export function readSaid(body: unknown, strict: boolean): Said {
  const findings = new Findings();
  const said = saidIn(objectOf(body, ['body']), strict, ['body'], findings);
  findings.refuseIfAny();
  return said;
}

/** Reads feedback from a query string. All values are text, but `correction` may be JSON text. Refuses `metadata`. */
export function readSaidQuery(search: URLSearchParams, strict: boolean): Said {
  const findings = new Findings();
  const given: Record<string, unknown> = {};
  for (const field of ['value', 'comment'] as const) {
    if (search.has(field)) given[field] = search.get(field);
  }
  const [score, correction] = [search.get('score'), search.get('correction')];
  if (score !== null) given.score = scoreOf(score);
  if (correction !== null) given.correction = correctionOf(correction);
  if (search.has('metadata')) findings.add(['query', 'metadata'], 'unsupported', '`metadata` goes with POST alone');
  const said = saidIn(given, strict, ['query'], findings);
  findings.refuseIfAny();
  return said;
}

/** Feedback that names its run and its key: `{ run_id, key, id?, … }`. What else there is in it is passed over. */
export function readFeedback(value: unknown, loc: Location, findings: Findings): Feedback {
  const given = objectOf(value, loc);
  const { run_id: run, key, id } = given;
  const runId = uuidIn(run, [...loc, 'run_id'], findings);
  const ownId = id === undefined || id === null ? randomUUID() : uuidIn(id, [...loc, 'id'], findings);
  checkKey(key, [...loc, 'key'], findings);
  return feedbackOf(saidIn(given, false, loc, findings), runId, String(key), ownId);
}

/** Feedback that is given now. */
export function feedbackOf(said: Said, runId: string, key: string, id: string): Feedback {
  const now = isoTimestamp(Date.now() * 1_000);
  return { id, run_id: runId, key, ...said, created_at: now, modified_at: now };
}

/** Adds to the findings when a key is none. */
export function checkKey(key: unknown, loc: Location, findings: Findings): void {
  if (typeof key === 'string' && key !== '' && key.length <= KEY_LENGTH_MAX) return;
  const expected = `text of 1 to ${KEY_LENGTH_MAX} characters`;
  findings.add(loc, 'string', `Expected \`${loc.at(-1)}\` to be ${expected}, got ${shown(key)}`);
}

/** The id in the one spelling; empty, and told to the findings, when it is none. */
export function uuidIn(value: unknown, loc: Location, findings: Findings): string {
  const id = typeof value === 'string' ? parseUuid(value, true) : undefined;
  if (id === undefined) findings.add(loc, 'uuid', `Expected \`${loc.at(-1)}\` to be a UUID, got ${shown(value)}`);
  return id ?? '';
}

function saidIn(given: Readonly<Record<string, unknown>>, strict: boolean, loc: Location, findings: Findings): Said {
  const said: Record<string, unknown> = {};
  for (const [field, [rule, strictRule = rule]] of Object.entries(RULES)) {
    const value = Object.hasOwn(given, field) ? given[field] : undefined;
    if (value === undefined || (value === null && !strict)) continue;
    const [expected, holds] = strict ? strictRule : rule;
    if (holds(value)) said[field] = value;
    else findings.add([...loc, field], 'type', `Expected \`${field}\` to be ${expected}, got ${shown(value)}`);
  }
  for (const field of strict ? Object.keys(given) : []) {
    if (!Object.hasOwn(RULES, field)) findings.add([...loc, field], 'unknown_field', 'Feedback has no such field');
  }
  return said;
}

const NUMBER = /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i;

function scoreOf(text: string): unknown {
  if (text === 'true' || text === 'false') return text === 'true';
  return NUMBER.test(text) ? Number(text) : text;
}

/** Returns the object if the text is a JSON object, otherwise the text. */
function correctionOf(text: string): unknown {
  try {
    const value = new JsonReader().parse(Buffer.from(text), 'It');
    return isObject(value) ? value : text;
  } catch {
    return text;
  }
}

function objectOf(value: unknown, loc: Location): Record<string, unknown> {
  if (isObject(value)) return value;
  throw new Refusal(400, `${loc.length === 1 ? 'The body' : loc.slice(1).join('.')} is no JSON object`);
}
