import { attributesOfVectorEvent } from './conventions/traceloop.ts';
import { type Attributes, defined, type Fields, isEmpty, isObject, json, text } from './conventions/values.ts';
import type { SpanEventLike } from './span-like.ts';

/** What the events of a span tell, under the names of the attributes that would tell it. */
export interface Told {
  readonly attributes: Attributes;
  /** The events that have told it, each with the names of what it told. */
  readonly tellers: ReadonlyMap<SpanEventLike, readonly string[]>;
}

/**
 * Messages that come by events in the place of attributes, as the GenAI conventions had it in their first versions. Undefined
 * when no event tells of any.
 */
export function toldByEvents(events: readonly SpanEventLike[]): Told | undefined {
  let told: { attributes: Fields; tellers: Map<SpanEventLike, readonly string[]> } | undefined;
  for (const event of events) {
    const values = attributesOfEvent(event.name, event.attributes ?? {});
    if (values === undefined) continue;
    told ??= { attributes: {}, tellers: new Map() };
    addTold(told.attributes, values);
    told.tellers.set(event, Object.keys(values));
  }
  return told;
}

/** The events that the run still has to show: without those whose every word it has taken. */
export function withoutTellers(
  events: readonly SpanEventLike[],
  { tellers }: Told,
  used: ReadonlySet<string>,
): readonly SpanEventLike[] {
  return events.filter((event) => tellers.get(event)?.every((name) => used.has(name)) !== true);
}

/**
 * What one event or log record tells, under the names of attributes; undefined for an event of any other name, and for one
 * without content, as instrumentations send them that are not to capture it.
 */
export function attributesOfEvent(name: string, fields: Attributes): Attributes | undefined {
  const values = EVENTS.get(name)?.(contentOf(fields)) ?? attributesOfVectorEvent(name, fields);
  return values === undefined || isEmpty(values) ? undefined : values;
}

/**
 * Adds to what has been told before: lists are continued, and what has been said stands. The lists are our own, so that each
 * event costs what it brings: the first one may be the application's.
 */
export function addTold(to: Fields, values: Attributes): void {
  for (const [name, value] of Object.entries(values)) {
    const before = to[name];
    if (before === undefined) to[name] = Array.isArray(value) ? [...value] : value;
    else if (Array.isArray(before) && Array.isArray(value)) for (const item of value) before.push(item);
  }
}

/** Whether an event or a log record describes an exception. Span events use the first name, log records either. */
export function isExceptionEvent(name: string): boolean {
  return name === 'exception' || name === 'gen_ai.client.operation.exception';
}

export function isMessageEvent(name: string): boolean {
  return EVENTS.has(name);
}

/** Whether the event's own name says that all it holds is of one side, whatever its attributes are called. */
export function carriesInputs(name: string): boolean {
  return INPUT_EVENTS.has(name);
}

export function carriesOutputs(name: string): boolean {
  return OUTPUT_EVENTS.has(name);
}

const INPUTS = 'gen_ai.input.messages';
const OUTPUTS = 'gen_ai.output.messages';

type Tell = (fields: Attributes) => Attributes;

/**
 * Up to version 1.36 of the conventions one event for each message:
 * https://github.com/open-telemetry/semantic-conventions/blob/v1.36.0/docs/gen-ai/gen-ai-events.md
 * and in 1.27 one for all:
 * https://github.com/open-telemetry/semantic-conventions/blob/v1.27.0/docs/gen-ai/gen-ai-spans.md#events
 */
const INPUT_EVENTS: ReadonlyMap<string, Tell> = new Map<string, Tell>([
  ['gen_ai.system.message', (fields) => listed(INPUTS, messageOf('system', fields))],
  ['gen_ai.user.message', (fields) => listed(INPUTS, messageOf('user', fields))],
  ['gen_ai.assistant.message', (fields) => listed(INPUTS, messageOf('assistant', fields))],
  ['gen_ai.tool.message', (fields) => listed(INPUTS, messageOf('tool', fields))],
  ['gen_ai.content.prompt', (fields) => named(fields, ['gen_ai.prompt'])],
]);

const OUTPUT_EVENTS: ReadonlyMap<string, Tell> = new Map<string, Tell>([
  ['gen_ai.choice', (fields) => listed(OUTPUTS, choiceOf(fields))],
  ['gen_ai.content.completion', (fields) => named(fields, ['gen_ai.completion'])],
]);

/** What the event of the present version holds beside the attributes of its span. */
const DETAILS: readonly string[] = [INPUTS, OUTPUTS, 'gen_ai.system_instructions', 'gen_ai.tool.definitions'];

const EVENTS: ReadonlyMap<string, Tell> = new Map<string, Tell>([
  ...INPUT_EVENTS,
  ...OUTPUT_EVENTS,
  ['gen_ai.client.inference.operation.details', (fields) => named(fields, DETAILS)],
]);

/** Azure's packages give the body of an event as JSON, in one attribute. */
function contentOf(fields: Attributes): Attributes {
  const content = json(fields['gen_ai.event.content']);
  return isObject(content) ? { ...fields, ...content } : fields;
}

/** Structured where the value is, so that what comes in several events can be put together. */
function named(fields: Attributes, names: readonly string[]): Attributes {
  return defined(Object.fromEntries(names.map((name) => [name, structured(name, fields[name])])));
}

function structured(name: string, value: unknown): unknown {
  return name.endsWith('.messages') ? json(value) : value;
}

function listed(name: string, message: Fields | undefined): Attributes {
  return message === undefined ? {} : { [name]: [message] };
}

/** Undefined for a message of which nothing but the role is told. */
function messageOf(role: string, fields: Attributes): Fields | undefined {
  const content = fields.content ?? undefined;
  const calls = json(fields.tool_calls) ?? undefined;
  if (content === undefined && calls === undefined) return undefined;
  return defined({
    role: text(fields.role) ?? role,
    name: text(fields.name),
    content,
    tool_calls: calls,
    tool_call_id: role === 'tool' ? fields.id : undefined,
  });
}

/** The calls of tools stand beside the message in the table of the conventions, and within it in their examples. */
function choiceOf(fields: Attributes): Fields | undefined {
  const given = json(fields.message);
  const said = isObject(given) ? given : { content: given };
  const message = messageOf('assistant', { tool_calls: fields.tool_calls, ...said });
  return message && defined({ ...message, finish_reason: text(fields.finish_reason) });
}
