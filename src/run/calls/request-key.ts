import { isFields, parsedJson } from '../../payload/fields.ts';

/** Fields of a request that contain its texts, in the order in which they are compared. */
const TEXT_FIELDS: readonly string[] = [
  ...['system', 'instructions', 'prompt', 'messages', 'contents', 'input', 'inputs', 'value', 'values', 'query'],
  ...['documents', 'content', 'parts', 'text'],
];

/** Fields that contain the id of a tool's call in a result of the tool. */
const ID_FIELDS: readonly string[] = ['tool_call_id', 'tool_use_id', 'toolCallId', 'toolUseId', 'call_id', 'id'];

/** Roles and types of the results of tools. Each service and SDK writes results differently. */
const RESULTS: ReadonlySet<unknown> = new Set([
  ...['tool', 'function', 'tool_result', 'tool-result', 'tool_call_response', 'function_call_output'],
  ...['function_result', 'function.result'],
]);

/** Types of a model's thoughts, which some formats leave out. */
const THOUGHTS: ReadonlySet<unknown> = new Set(['thinking', 'reasoning', 'redacted_thinking']);

/** Keys under which some sources record the arguments of a tool. */
const ENVELOPES: readonly string[] = ['input', 'args', 'arguments'];

const DEPTH_MAX = 16;
/** Maximum number of values of a request that are read. */
const VALUES_MAX = 50_000;

/**
 * Returns a fingerprint of the texts in a request, which is the same in every format of a request. Roles, parameters,
 * media, calls of tools, their results and thoughts are not compared. If the request has no text, the ids of the results
 * of tools are compared. Returns undefined if there is nothing to compare, or too much.
 */
export function requestKey(inputs: unknown): string | undefined {
  const { texts, ids, valuesLeft } = new RequestWalk(inputs);
  if (valuesLeft < 0) return undefined;
  if (texts.length > 0) return hashOf(texts.join('\0'));
  return ids.length === 0 ? undefined : hashOf(`ids\0${ids.join('\0')}`);
}

/** Returns the texts in a request: the system prompt first, then the messages in their order. */
export function requestTexts(inputs: unknown): string[] {
  return new RequestWalk(inputs).texts;
}

/** Returns a fingerprint of a tool's arguments. Undefined if the arguments cannot be compared, or there are too many. */
export function argumentsKey(inputs: unknown): string | undefined {
  const json = sortedJson(withoutEnvelope(inputs), 0, { values: VALUES_MAX });
  return json === undefined ? undefined : hashOf(json);
}

/** Returns the arguments in an object such as `{ input: '{"city":"Cork"}' }`. */
function withoutEnvelope(inputs: unknown): unknown {
  const [[key, value] = [], ...others] = isFields(inputs) ? Object.entries(inputs) : [];
  if (others.length > 0 || key === undefined || !ENVELOPES.includes(key)) return inputs;
  const parsed = typeof value === 'string' ? parsedJson(value) : value;
  return isFields(parsed) ? parsed : value;
}

class RequestWalk {
  readonly texts: string[] = [];
  readonly ids: string[] = [];
  valuesLeft = VALUES_MAX;

  constructor(inputs: unknown) {
    this.#add(inputs, 0);
  }

  #add(value: unknown, depth: number): void {
    if (--this.valuesLeft < 0) return;
    if (typeof value === 'string') {
      const text = value.trim();
      // Versions of Traceloop up to 0.22 write `null` for a message without text.
      if (text !== '' && text !== 'null') this.texts.push(text);
    } else if (typeof value === 'object' && value !== null && depth < DEPTH_MAX) {
      if (Array.isArray(value)) for (const item of value) this.#add(item, depth + 1);
      else this.#addFields(value as Readonly<Record<string, unknown>>, depth);
    }
  }

  #addFields(fields: Readonly<Record<string, unknown>>, depth: number): void {
    const { toolResult = fields.functionResponse } = fields;
    if (THOUGHTS.has(fields.type)) return;
    if (RESULTS.has(fields.role) || RESULTS.has(fields.type)) this.#addId(fields, depth);
    else if (typeof toolResult === 'object' && toolResult !== null) this.#addId(toolResult as typeof fields, depth);
    else for (const key of TEXT_FIELDS) this.#add(fields[key], depth + 1);
  }

  /** Adds the id of a result. Some SDKs put several results into the parts of one message. */
  #addId(fields: Readonly<Record<string, unknown>>, depth: number): void {
    const id = ID_FIELDS.map((key) => fields[key]).find((value) => typeof value === 'string');
    if (id !== undefined) this.ids.push(id as string);
    const { content = fields.parts } = fields;
    if (!Array.isArray(content) || depth >= DEPTH_MAX) return;
    for (const part of content) {
      if (--this.valuesLeft >= 0 && typeof part === 'object' && part !== null) this.#addId(part, depth + 1);
    }
  }
}

/** Returns JSON with sorted keys. Undefined for a value that has no JSON, or that is too deep or too large. */
function sortedJson(given: unknown, depth: number, budget: { values: number }): string | undefined {
  const value = isFields(given) && typeof given.toJSON === 'function' ? given.toJSON() : given;
  if (depth > DEPTH_MAX || --budget.values < 0 || value instanceof Map || value instanceof Set) return undefined;
  if (typeof value !== 'object' || value === null)
    return typeof value === 'bigint' ? `${value}` : JSON.stringify(value);
  const entries = Array.isArray(value)
    ? value.map((item) => sortedJson(item ?? null, depth + 1, budget))
    : Object.entries(value)
        .filter(([, item]) => item !== undefined)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([key, item]) => withKey(key, sortedJson(item, depth + 1, budget)));
  if (entries.includes(undefined)) return undefined;
  return Array.isArray(value) ? `[${entries.join()}]` : `{${entries.join()}}`;
}

function withKey(key: string, json: string | undefined): string | undefined {
  return json === undefined ? undefined : `${JSON.stringify(key)}:${json}`;
}

/** Returns a hash of 53 bits, after `cyrb53` by bryc (public domain). */
function hashOf(text: string): string {
  let [one, two] = [0xdeadbeef, 0x41c6ce57];
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    one = Math.imul(one ^ code, 2654435761);
    two = Math.imul(two ^ code, 1597334677);
  }
  one = Math.imul(one ^ (one >>> 16), 2246822507) ^ Math.imul(two ^ (two >>> 13), 3266489909);
  two = Math.imul(two ^ (two >>> 16), 2246822507) ^ Math.imul(one ^ (one >>> 13), 3266489909);
  return (4294967296 * (2097151 & two) + (one >>> 0)).toString(36);
}
