import { RunspanError } from '../../base/errors.ts';
import { exactJson, parseExact } from '../../payload/fields.ts';
import { parseIsoTimestamp } from '../../run/time.ts';
import type { TimeRange } from '../domain/query/query.ts';
import { condition, filterValue, searchWords } from './parser.ts';

/** A filter of LangSmith's API in the receiver's filter language. */
export interface LangSmithFilter {
  readonly text: string;
  /** The comparisons with `start_time`, in microseconds, because the filter language has times in milliseconds. */
  readonly ranges: readonly TimeRange[];
}

/** The text of the condition that a run has an error. */
export const HAS_ERROR = 'error:*""*';

/**
 * Translates a filter such as `and(eq(run_type, "llm"), gt(latency, 10))`. Throws `RUNSPAN_INVALID_OPTION` if the filter
 * is invalid, or if the filter language has no such condition. The text may still be an invalid filter.
 */
export function translateFilter(given: string): LangSmithFilter {
  const ranges: TimeRange[] = [];
  const isRange = (call: Call) => fieldOf(call) === 'start_time' && ranges.push(rangeOf(call)) > 0;
  const partsOf = (call: Call): string[] => {
    if (call.name === 'and' && !call.args.some(isPart)) return call.args.map(callOf).flatMap(partsOf);
    if (call.name !== 'and') return isRange(call) ? [] : [textOfCall(call)];
    return [textOfAll(call.args.map(callOf).filter((one) => !isRange(one)))];
  };
  return { text: partsOf(parse(given)).join(' '), ranges };
}

/** A call in a filter, for example `eq(name, "chat")`. */
interface Call {
  readonly name: string;
  readonly args: readonly Value[];
}
type Value = string | number | boolean | null | readonly Value[] | { readonly field: string } | Call;

const LENGTH_MAX = 4_000;
const TOKEN =
  /\s*(?:("(?:[^"\\]|\\.)*")|'((?:[^'\\]|\\.)*)'|([a-z_]\w*)\s*\(|(true|false|null)\b|([a-z_]\w*)|(\))|([[\],]|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?))\s*/iy;

/** Parses a filter. Its tokens are rewritten to JSON, which `JSON.parse` checks. */
function parse(text: string): Call {
  let json = '';
  if (text.length > LENGTH_MAX) throw refusal(`a filter has at most ${LENGTH_MAX} characters`);
  for (TOKEN.lastIndex = 0; TOKEN.lastIndex < text.length; ) {
    const at = TOKEN.lastIndex;
    const [match, double, single, name, literal, field, close, other] = TOKEN.exec(text) ?? [];
    if (match === undefined) throw refusal(`unexpected text at character ${at + 1}`);
    // A backslash in a pattern of `like()` is no escape of JSON.
    if (double !== undefined)
      json += double.replace(/\\(?:["\\/bfnrt]|u[\da-f]{4}|(.))/gis, (all, char) => (char ? `\\${all}` : all));
    else if (single !== undefined) json += JSON.stringify(single.replace(/\\(['\\])/g, '$1'));
    else if (name !== undefined) json += `{"name":"${name}","args":[`;
    else if (field !== undefined) json += `{"field":"${field}"}`;
    else json += close === undefined ? (literal?.toLowerCase() ?? other) : ']}';
  }
  try {
    return callOf(parseExact(json, String));
  } catch {
    throw refusal('expected conditions such as and(eq(name, "chat"), gt(latency, 2))');
  }
}

function textOfCall(call: Call): string {
  const { name, args } = call;
  if (name === 'search' && args.length === 1) return searchWords(stringOf(args[0]));
  if (name === 'and') return textOfAll(args.map(callOf));
  if (name === 'or') return `(${args.map((one) => textOfCall(callOf(one))).join(' OR ')})`;
  if (name === 'not' && args.length === 1) return `NOT (${textOfCall(callOf(args[0]))})`;
  return isPart(call) ? textOfAll([call]) : comparison(call);
}

/** Returns whether the call compares one part of a pair, such as the key of feedback. */
const isPart = (value: Value): boolean => /^(?:feedback|metadata)_/.test(fieldOf(callOf(value)) ?? '');

function textOfAll(calls: readonly Call[]): string {
  const pairs = ['feedback', 'metadata'].flatMap((pair) => {
    const parts = calls.filter((call) => fieldOf(call)?.startsWith(`${pair}_`));
    return parts.length === 0 ? [] : [pairText(pair, parts)];
  });
  const texts = [...calls.filter((call) => !isPart(call)).map(textOfCall), ...pairs];
  return texts.length === 1 ? texts.join() : `(${texts.join(' ')})`;
}

/** Returns the condition for the key of feedback or metadata, and at most one comparison of its value. */
function pairText(pair: string, parts: readonly Call[]): string {
  const [key, ...keys] = parts.filter((call) => fieldOf(call) === `${pair}_key`);
  const [value, ...values] = parts.filter((call) => call !== key);
  if (key?.name !== 'eq' || keys.length + values.length > 0) {
    throw refusal(`expected eq(${pair}_key, "…") and at most one comparison of its value in one and()`);
  }
  const term = `${pair === 'metadata' ? 'meta' : pair}.${filterValue(stringOf(key.args[1]))}`;
  const field = value && fieldOf(value);
  if (value === undefined) return term;
  if (field === 'metadata_value')
    return value.name === 'neq' ? `(${term} ${matching(term, value)})` : matching(term, value);
  if (field === 'feedback_score') return amount(term, value);
  const text = stringOf(value.args[1]);
  // The filter language compares such a text with the score too.
  const isScore = /^(?:true|false|[-\d].*)$/s.test(text);
  if (field === 'feedback_value' && value.name === 'eq' && !isScore) return `${term}:${filterValue(text)}`;
  throw refusal('feedback_value can be compared only by eq(), and not with a number, true or false');
}

const TEXTS: ReadonlyMap<string, string> = new Map([
  ['name', 'name'],
  ['run_type', 'type'],
  ['status', 'status'],
  ['id', 'run'],
  ['run_id', 'run'],
  ['trace_id', 'trace'],
  ['thread_id', 'thread'],
]);

const AMOUNTS: ReadonlyMap<string, string> = new Map([
  ['latency', 'latency'],
  ['total_tokens', 'tokens'],
  ['prompt_tokens', 'input_tokens'],
  ['completion_tokens', 'output_tokens'],
  ['total_cost', 'cost'],
]);

function comparison(call: Call): string {
  const [name, operator, value] = [fieldOf(call) ?? '', call.name, call.args[1]];
  const isNot = operator === 'neq';
  const negated = (text: string, isNegated = isNot) => (isNegated ? `NOT ${text}` : text);
  if (operator === 'eq' || isNot) {
    if (name === 'is_root' && typeof value === 'boolean') return negated('is:root', isNot === value);
    if (name === 'parent_run_id' && value === null) return negated('is:root');
    if (name === 'error' && value === null) return negated(HAS_ERROR, !isNot);
  }
  const like = operator === 'like' ? stringOf(value) : '';
  if (name === 'error' && /^%[^%_\\]*%$/.test(like)) return `error:${patternOf(like)}`;
  if (name === 'tags' && operator === 'has') return condition('tag', stringOf(value));
  if (name === 'tags' && operator === 'in') return matching('tag', call);
  if (name === 'metadata' && operator === 'has') return metadataText(stringOf(value));
  const [text, number] = [TEXTS.get(name), AMOUNTS.get(name)];
  if (text !== undefined) return matching(text, call);
  if (number !== undefined) return negated(amount(number, isNot ? { ...call, name: 'eq' } : call));
  if (name === 'start_time')
    throw refusal('start_time cannot be compared in or(), not(), trace_filter and tree_filter');
  throw refusal(`${operator}(${name}${name && ', '}…) is not supported`);
}

/** Returns the comparison of a text. `neq` also matches runs without a value. */
function matching(key: string, { name, args: [, value] }: Call): string {
  if (name === 'eq') return `${key}:${filterValue(stringOf(value))}`;
  if (name === 'neq') return `NOT ${key}:${filterValue(stringOf(value))}`;
  if (name === 'like') return `${key}:${patternOf(stringOf(value))}`;
  if (name === 'in' && Array.isArray(value))
    return `${key}:${value.map((one) => filterValue(stringOf(one))).join(',')}`;
  throw refusal(`${name}() is not supported for a text`);
}

function patternOf(text: string): string {
  const [, start, body = '', end] = /^(%?)((?:[^%_\\]|\\[%_\\])*)(%?)$/s.exec(text) ?? [];
  if (start === undefined) throw refusal('like() supports % at the start and the end, and \\_ for an underscore');
  return `${start && '*'}${filterValue(body.replace(/\\(.)/g, '$1'))}${end && '*'}`;
}

const OPERATORS: ReadonlyMap<string, string> = new Map(Object.entries({ gt: '>', gte: '>=', lt: '<', lte: '<=' }));

function amount(key: string, { name, args: [, value] }: Call): string {
  const text = String(typeof value === 'boolean' ? Number(value) : value);
  const operator = OPERATORS.get(name);
  // Any other text could add a condition to the filter, or be a range.
  if (!/^(?!.*\.\.)[\w.+-]+$/.test(text) || (operator === undefined && name !== 'eq'))
    throw refusal(`${name}() expects a number, got ${JSON.stringify(text)}`);
  return operator === undefined ? `${key}:${text}..${text}` : `${key}${operator}${text}`;
}

function metadataText(json: string): string {
  try {
    const entries = Object.entries(parseExact<object>(json));
    const texts = entries.map(
      ([key, value]) => `meta.${filterValue(key)}:${filterValue(typeof value === 'string' ? value : exactJson(value))}`,
    );
    if (texts.length > 0) return `(${texts.join(' ')})`;
  } catch {}
  throw refusal('has(metadata, …) expects a JSON object, for example \'{"plan": "pro"}\'');
}

/** Returns the start times that match a comparison. A time without a zone is in UTC. */
function rangeOf({ name, args: [, value] }: Call): TimeRange {
  const text = stringOf(value);
  const us = parseIsoTimestamp(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text);
  if (us === undefined) throw refusal(`start_time expects an ISO 8601 time, got ${JSON.stringify(text)}`);
  if (name !== 'eq' && !OPERATORS.has(name)) throw refusal(`${name}(start_time, …) is not supported`);
  return {
    fromUs: name.startsWith('l') ? Number.NEGATIVE_INFINITY : us + Number(name === 'gt'),
    beforeUs: name.startsWith('g') ? Number.POSITIVE_INFINITY : us + Number(name !== 'lt'),
  };
}

/** Returns the field that a call compares with one value. */
function fieldOf({ args: [field, ...values] }: Call): string | undefined {
  const isField = typeof field === 'object' && field !== null && 'field' in field;
  return isField && values.length === 1 ? field.field : undefined;
}

function callOf(value: Value | undefined): Call {
  if (typeof value === 'object' && value !== null && 'name' in value) return value;
  throw refusal('and(), or() and not() expect conditions');
}

function stringOf(value: Value | undefined): string {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return String(value);
  throw refusal('expected a text in quotes');
}

function refusal(problem: string): RunspanError {
  return new RunspanError('RUNSPAN_INVALID_OPTION', problem);
}
