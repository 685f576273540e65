import { defined, type Fields, isFields } from '../../payload/fields.ts';
import type { PayloadRules } from '../../payload/limits.ts';
import { serialize } from '../../payload/serialize.ts';
import { attributesOfVectorEvent } from '../conventions/traceloop.ts';
import { type Attributes, isEmpty, json, text } from '../conventions/values.ts';
import type { SpanEventLike } from '../span-like.ts';

/** Messages from a span's events, by the attribute that would contain them. */
export interface EventMessages {
  readonly attributes: Attributes;
  /** The events that contain messages, and the names of the attributes that each event sets. */
  readonly sources: ReadonlyMap<SpanEventLike, readonly string[]>;
}

/**
 * Reads messages from events, as in early versions of the GenAI conventions. Returns undefined if there are no
 * messages.
 */
export function messagesOfEvents(events: readonly SpanEventLike[]): EventMessages | undefined {
  let found: { attributes: Fields; sources: Map<SpanEventLike, readonly string[]> } | undefined;
  for (const event of events) {
    const values = attributesOfEvent(event.name, event.attributes ?? {});
    if (values === undefined) continue;
    found ??= { attributes: {}, sources: new Map() };
    addAttributes(found.attributes, values);
    found.sources.set(event, Object.keys(values));
  }
  return found;
}

/** Removes the events whose messages are all recorded in inputs or outputs. */
export function withoutUsedEvents(
  events: readonly SpanEventLike[],
  { sources }: EventMessages,
  used: ReadonlySet<string>,
): readonly SpanEventLike[] {
  return events.filter((event) => sources.get(event)?.every((name) => used.has(name)) !== true);
}

/**
 * Returns the messages in an event or a log record, by the attribute that would contain them. Returns undefined for
 * events without messages.
 */
export function attributesOfEvent(name: string, fields: Attributes): Attributes | undefined {
  const values = EVENTS.get(name)?.(contentOf(fields)) ?? attributesOfVectorEvent(name, fields);
  return values === undefined || isEmpty(values) ? undefined : values;
}

/**
 * Copies of the messages that log records add to an open span, by attribute name. One payload's limits apply to all
 * messages together. Log records beyond the limits are dropped and counted.
 */
export class LogMessages {
  readonly attributes: Fields = {};
  readonly #rules: PayloadRules;
  #charactersLeft: number;
  /** Number of log records dropped because of the limits. */
  leftOut = 0;

  constructor(rules: PayloadRules) {
    // The values' paths are unknown until the span ends.
    this.#rules = { ...rules, bytes: Number.POSITIVE_INFINITY, redaction: undefined };
    this.#charactersLeft = rules.bytes;
  }

  add(values: Attributes): void {
    if (this.#charactersLeft <= 0) {
      this.leftOut++;
      return;
    }
    const json = serialize(values, this.#rules);
    this.#charactersLeft -= json.length;
    const copy: unknown = JSON.parse(json);
    addAttributes(this.attributes, copy as Attributes);
  }
}

/**
 * Whether an event or a log record describes an exception. Span events have the name `exception`. Log records may have
 * either name.
 */
export function isExceptionEvent(name: string): boolean {
  return name === 'exception' || name === 'gen_ai.client.operation.exception';
}

export function isMessageEvent(name: string): boolean {
  return EVENTS.has(name);
}

/** Whether all attributes of an event belong to the inputs. */
export function carriesInputs(name: string): boolean {
  return INPUT_EVENTS.has(name);
}

export function carriesOutputs(name: string): boolean {
  return OUTPUT_EVENTS.has(name);
}

/** Extends lists and keeps other values. Copies a new list, which may belong to the application. */
function addAttributes(to: Fields, values: Attributes): void {
  for (const [name, value] of Object.entries(values)) {
    const before = to[name];
    if (before === undefined) to[name] = Array.isArray(value) ? [...value] : value;
    else if (Array.isArray(before) && Array.isArray(value)) for (const item of value) before.push(item);
  }
}

const INPUTS = 'gen_ai.input.messages';
const OUTPUTS = 'gen_ai.output.messages';

type ReadEvent = (fields: Attributes) => Attributes;

/**
 * Up to version 1.36, the conventions define one event per message:
 * https://github.com/open-telemetry/semantic-conventions/blob/v1.36.0/docs/gen-ai/gen-ai-events.md
 *
 * Version 1.27 defines one event for all messages:
 * https://github.com/open-telemetry/semantic-conventions/blob/v1.27.0/docs/gen-ai/gen-ai-spans.md#events
 */
const INPUT_EVENTS: ReadonlyMap<string, ReadEvent> = new Map<string, ReadEvent>([
  ['gen_ai.system.message', (fields) => listed(INPUTS, messageOf('system', fields))],
  ['gen_ai.user.message', (fields) => listed(INPUTS, messageOf('user', fields))],
  ['gen_ai.assistant.message', (fields) => listed(INPUTS, messageOf('assistant', fields))],
  ['gen_ai.tool.message', (fields) => listed(INPUTS, messageOf('tool', fields))],
  ['gen_ai.content.prompt', (fields) => named(fields, ['gen_ai.prompt'])],
]);

const OUTPUT_EVENTS: ReadonlyMap<string, ReadEvent> = new Map<string, ReadEvent>([
  ['gen_ai.choice', (fields) => listed(OUTPUTS, choiceOf(fields))],
  ['gen_ai.content.completion', (fields) => named(fields, ['gen_ai.completion'])],
]);

/** Attributes of the event `gen_ai.client.inference.operation.details` in the current conventions. */
const DETAILS: readonly string[] = [INPUTS, OUTPUTS, 'gen_ai.system_instructions', 'gen_ai.tool.definitions'];

const EVENTS: ReadonlyMap<string, ReadEvent> = new Map<string, ReadEvent>([
  ...INPUT_EVENTS,
  ...OUTPUT_EVENTS,
  ['gen_ai.client.inference.operation.details', (fields) => named(fields, DETAILS)],
]);

/** Returns an event's body. Azure's packages set the body as JSON text in one attribute. */
function contentOf(fields: Attributes): Attributes {
  const content = json(fields['gen_ai.event.content']);
  return isFields(content) ? { ...fields, ...content } : fields;
}

/** Returns the attributes with these names. Parses lists of messages, so that several events' lists can be combined. */
function named(fields: Attributes, names: readonly string[]): Attributes {
  return defined(Object.fromEntries(names.map((name) => [name, structured(name, fields[name])])));
}

function structured(name: string, value: unknown): unknown {
  return name.endsWith('.messages') ? json(value) : value;
}

function listed(name: string, message: Fields | undefined): Attributes {
  return message === undefined ? {} : { [name]: [message] };
}

/** Returns a message, or undefined if it only has a role. */
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

/**
 * Reads one choice in the model's answer. Accepts tool calls next to the message, as the conventions define them, and
 * inside it, as in their examples.
 */
function choiceOf(fields: Attributes): Fields | undefined {
  const given = json(fields.message);
  const body = isFields(given) ? given : { content: given };
  const message = messageOf('assistant', { tool_calls: fields.tool_calls, ...body });
  return message && defined({ ...message, finish_reason: text(fields.finish_reason) });
}
