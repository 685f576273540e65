import { defined, type Fields, isFields, parsedJson } from '../../payload/fields.ts';
import { serialize } from '../../payload/serialize.ts';
import type { PayloadRules } from '../../payload/truncate.ts';
import { CLAUDE_REDACTED } from '../conventions/claude-code.ts';
import { attributesOfVectorEvent } from '../conventions/traceloop.ts';
import { type Attributes, hasNoFields, json, text } from '../conventions/values.ts';
import type { SpanEventLike } from '../span-like.ts';
import { exceptionFields } from './span-error.ts';

/** The messages in a span's events, by the name of the attribute that would otherwise contain the messages. */
export interface EventMessages {
  readonly attributes: Attributes;
  /** Maps each event that carries messages to the attributes that it sets. */
  readonly sources: ReadonlyMap<SpanEventLike, readonly string[]>;
}

/** Reads messages from events, as early GenAI conventions report them. Returns undefined if there are none. */
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

/** Returns the messages in an event or a log record, by attribute name. Returns undefined if there are none. */
export function attributesOfEvent(name: string, fields: Attributes): Attributes | undefined {
  const values = EVENTS.get(name)?.(contentOf(fields)) ?? attributesOfVectorEvent(name, fields);
  return values === undefined || hasNoFields(values) ? undefined : values;
}

/** Returns whether an attribute is left out because inputs or outputs are hidden. */
type IsHidden = (name: string, value: unknown) => boolean;

/**
 * Stores what log records add to an open span: the last exception, and copies of the messages. All messages together must
 * stay within the limits for one payload. Log records beyond the limits are dropped and counted.
 */
export class SpanLogs {
  readonly attributes: Fields = {};
  exception: Attributes | undefined;
  readonly #rules: PayloadRules;
  readonly #isHidden: IsHidden | undefined;
  #charactersLeft: number;
  /** Number of log records that were dropped because of the limits. */
  leftOut = 0;

  constructor(rules: PayloadRules, isHidden: IsHidden | undefined) {
    this.#isHidden = isHidden;
    // Redaction happens when the span ends, because the paths of the values are unknown until then.
    this.#rules = { ...rules, bytes: Number.POSITIVE_INFINITY, redaction: undefined };
    this.#charactersLeft = rules.bytes;
  }

  /** Adds the attributes of an exception, or messages by attribute name. */
  add(values: Attributes, isException: boolean): void {
    if (isException) {
      this.exception = exceptionFields(values);
      return;
    }
    const shown = Object.entries(values).filter(([name, value]) => this.#isHidden?.(name, value) !== true);
    if (shown.length === 0) return;
    if (this.#charactersLeft <= 0) {
      this.leftOut++;
      return;
    }
    const json = serialize(Object.fromEntries(shown), this.#rules);
    this.#charactersLeft -= json.length;
    addAttributes(this.attributes, parsedJson(json) as Attributes);
  }
}

/** Returns whether an event or a log record describes an exception. Span events use only the name `exception`. */
export function isExceptionEvent(name: string): boolean {
  return name === 'exception' || name === 'gen_ai.client.operation.exception';
}

export function isMessageEvent(name: string): boolean {
  return EVENTS.has(name);
}

/** Returns whether attributes of an event belong to the inputs or outputs, so that the event is hidden with them. */
export function carries(name: string, payload: 'inputs' | 'outputs'): boolean {
  return (payload === 'inputs' ? INPUT_EVENTS : OUTPUT_EVENTS).has(name) || name === CODEX_RESULT;
}

/** Appends to existing lists, and keeps other existing values. Copies new lists, which may belong to the application. */
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
 * Reads events that contain inputs. Up to version 1.36, the conventions define one event per message:
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
  ['codex.user_prompt', ({ prompt }) => listed(INPUTS, agentMessage('user', prompt))],
]);

const OUTPUT_EVENTS: ReadonlyMap<string, ReadEvent> = new Map<string, ReadEvent>([
  ['gen_ai.choice', (fields) => listed(OUTPUTS, choiceOf(fields))],
  ['gen_ai.content.completion', (fields) => named(fields, ['gen_ai.completion'])],
  ['codex.agent_response', ({ response }) => listed(OUTPUTS, agentMessage('assistant', response))],
  // Claude Code: a log record for each answer of an interaction or a subagent, and a span event of a tool.
  ['assistant_response', ({ response }) => listed(OUTPUTS, agentMessage('assistant', response))],
  ['tool.output', ({ bash_command: _, ...result }) => ({ 'gen_ai.tool.call.result': result })],
]);

/** The arguments and the output of a tool. */
const CODEX_RESULT = 'codex.tool_result';

/** Attributes of the event `gen_ai.client.inference.operation.details` in the current conventions. */
const DETAILS: readonly string[] = [INPUTS, OUTPUTS, 'gen_ai.system_instructions', 'gen_ai.tool.definitions'];

const EVENTS: ReadonlyMap<string, ReadEvent> = new Map<string, ReadEvent>([
  ...INPUT_EVENTS,
  ...OUTPUT_EVENTS,
  ['gen_ai.client.inference.operation.details', (fields) => named(fields, DETAILS)],
  [
    CODEX_RESULT,
    ({ arguments: args, output }) => ({ 'gen_ai.tool.call.arguments': args, 'gen_ai.tool.call.result': output }),
  ],
]);

/** The attributes of message events that contain the message. */
export const MESSAGE_FIELDS: ReadonlySet<string> = new Set([
  ...['role', 'name', 'id', 'content', 'tool_calls', 'message', 'finish_reason', 'prompt', 'response'],
  'gen_ai.event.content',
]);

/** Returns the body of an event. Azure's packages set the body as JSON text in a single attribute. */
function contentOf(fields: Attributes): Attributes {
  const content = json(fields['gen_ai.event.content']);
  return isFields(content) ? { ...fields, ...content } : fields;
}

/** Returns the attributes with the given names. Parses lists of messages, so that those of several events are combined. */
function named(fields: Attributes, names: readonly string[]): Attributes {
  const read = (name: string): unknown => (name.endsWith('.messages') ? json(fields[name]) : fields[name]);
  return defined(Object.fromEntries(names.map((name) => [name, read(name)])));
}

function listed(name: string, message: Fields | undefined): Attributes {
  return message === undefined ? {} : { [name]: [message] };
}

/** Returns a message, or undefined if the message only has a role. */
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

/** Reads a choice. Tool calls are next to its message, or inside it as in the examples of the conventions. */
function choiceOf(fields: Attributes): Fields | undefined {
  const given = json(fields.message);
  const body = isFields(given) ? given : { content: given };
  const message = messageOf('assistant', { tool_calls: fields.tool_calls, ...body });
  return message && defined({ ...message, finish_reason: text(fields.finish_reason) });
}

/** Returns a message of a coding agent, or undefined if the agent sends no content. */
function agentMessage(role: string, content: unknown): Fields | undefined {
  return REDACTED.has(content) ? undefined : messageOf(role, { content });
}

/** The texts that Claude Code and Codex send in place of content. */
const REDACTED: ReadonlySet<unknown> = new Set([CLAUDE_REDACTED, '[REDACTED]']);
