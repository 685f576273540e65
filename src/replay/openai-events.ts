import { defined, type Fields, fieldsOf, isFields, listOf, textOf } from '../payload/fields.ts';
import { interleaved, jsonEvent, namedEvent, wordsOf } from './event-text.ts';

/**
 * Builds the chunks of a chat or text completion. The usage is only sent if the request asks for it. An error is the last
 * event.
 */
export function choicesEvents(answer: Fields, request: Fields): string[] {
  const { choices, usage, object, error, ...head } = answer;
  const withUsage = usage !== undefined && fieldsOf(request.stream_options).include_usage === true;
  const chunk = (fields: Fields): string =>
    jsonEvent({
      ...head,
      object: object === 'chat.completion' ? 'chat.completion.chunk' : object,
      ...(withUsage && { usage: null }),
      ...fields,
    });
  const chunks = interleaved(listOf(choices).map((choice) => choiceChunks(fieldsOf(choice))));
  const events = chunks.map((choice) => chunk({ choices: [choice] }));
  if (withUsage || events.length === 0)
    events.push(chunk(defined({ choices: [], usage: withUsage ? usage : undefined })));
  return [...events, error === undefined ? 'data: [DONE]\n\n' : jsonEvent({ error })];
}

function choiceChunks({ index = 0, ...choice }: Fields): Fields[] {
  const { message, text, logprobs, finish_reason, ...others } = choice;
  const pending = defined({ logprobs: logprobs === undefined ? undefined : null, finish_reason: null });
  if (!isFields(message)) {
    const words = wordsOf(textOf(text) ?? '', 'space before');
    const last = words.pop() ?? text;
    return [...words.map((word) => ({ index, text: word, ...pending })), { index, ...choice, text: last }];
  }
  const { first, rest, lists } = messageDeltas(message, fieldsOf(logprobs));
  const opening = {
    index,
    delta: first,
    ...pending,
    ...(isFields(logprobs) && { logprobs: { ...logprobs, ...lists } }),
  };
  return [
    opening,
    ...rest.map((delta) => ({ index, ...pending, ...delta })),
    { index, delta: {}, ...pending, finish_reason, ...others },
  ];
}

/** The texts of a message, in the order in which they are streamed. The logprobs of a text have the same name. */
const MESSAGE_TEXTS = ['reasoning_content', 'reasoning', 'content', 'refusal'];

/** Splits a message. `lists` are the logprobs that `rest` contains, as empty lists. */
function messageDeltas(message: Fields, logprobs: Fields): { first: Fields; rest: Fields[]; lists: Fields } {
  const first = { ...message };
  const lists: Fields = {};
  const rest: Fields[] = [];
  const none = Object.fromEntries(Object.keys(logprobs).map((key) => [key, null]));
  for (const key of MESSAGE_TEXTS) {
    const words = wordsOf(textOf(message[key]) ?? '');
    if (words.length === 0) continue;
    first[key] = '';
    const shares = Array.isArray(logprobs[key]) ? sharesOf(logprobs[key], words.length) : undefined;
    if (shares !== undefined) lists[key] = [];
    for (const [at, word] of words.entries()) {
      const share = shares && { logprobs: { ...none, [key]: shares[at] } };
      rest.push({ delta: { [key]: word }, ...share });
    }
  }
  const { data, expires_at, ...audio } = fieldsOf(message.audio);
  if (typeof data === 'string') {
    delete first.audio;
    const [start, end] = halvesOf(data);
    const parts: Fields[] = [audio, { data: start }, defined({ data: end, expires_at })];
    rest.push(...parts.map((part) => ({ delta: { audio: part } })));
  }
  if (listOf(message.tool_calls).length > 0) {
    delete first.tool_calls;
    const calls = listOf(message.tool_calls).flatMap((call, index) => toolCallDeltas(fieldsOf(call), index));
    rest.push(...calls.map((call) => ({ delta: { tool_calls: [call] } })));
  }
  return { first, rest, lists };
}

/** Sends the arguments of a function, or the input of a custom tool, in halves. */
function toolCallDeltas(call: Fields, index: number): Fields[] {
  const [key, field] = isFields(call.custom) ? ['custom', 'input'] : ['function', 'arguments'];
  const called = fieldsOf(call[key]);
  const text = textOf(called[field]);
  if (text === undefined) return [{ index, ...call }];
  return [
    { index, ...call, [key]: { ...called, [field]: '' } },
    ...halvesOf(text).map((half) => ({ index, [key]: { [field]: half } })),
  ];
}

function halvesOf(text: string): [string, string] {
  const half = Math.ceil(text.length / 2);
  return [text.slice(0, half), text.slice(half)];
}

/** Gives each of `count` words one token, and the last word the remaining tokens. */
function sharesOf(tokens: readonly unknown[], count: number): (readonly unknown[])[] {
  return Array.from({ length: count }, (_, at) => tokens.slice(at, at + 1 === count ? undefined : at + 1));
}

/** Builds the events of a response. */
export function responseEvents(answer: Fields): string[] {
  const { status = 'completed', output } = answer;
  const begun = { ...answer, status: 'in_progress', error: null, output: [], usage: null };
  const events = [
    { type: 'response.created', response: begun },
    { type: 'response.in_progress', response: begun },
    ...listOf(output).flatMap((item, output_index) => itemEvents(fieldsOf(item), output_index)),
    { type: `response.${status}`, response: answer },
  ];
  return events.map((event, sequence_number) => namedEvent({ ...event, sequence_number }));
}

/** The text that is streamed of each type of item: its field and its events. */
const ITEM_TEXTS: ReadonlyMap<unknown, readonly [field: string, events: string]> = new Map([
  ['function_call', ['arguments', 'function_call_arguments']],
  ['mcp_call', ['arguments', 'mcp_call_arguments']],
  ['custom_tool_call', ['input', 'custom_tool_call_input']],
  ['code_interpreter_call', ['code', 'code_interpreter_call_code']],
]);

/** The lists of parts of each type of item. */
const ITEM_LISTS: ReadonlyMap<unknown, readonly string[]> = new Map([
  ['message', ['content']],
  ['reasoning', ['summary', 'content']],
]);

/** Builds the events of an item. Items without text are sent whole. */
function itemEvents(item: Fields, output_index: number): Fields[] {
  const at = { output_index, item_id: item.id };
  const [field = '', name] = ITEM_TEXTS.get(item.type) ?? [];
  const text = textOf(item[field]);
  const lists = (ITEM_LISTS.get(item.type) ?? []).filter((key) => Array.isArray(item[key]));
  const begun = { ...item, ...Object.fromEntries(lists.map((key) => [key, []])), ...(text && { [field]: '' }) };
  const isBegun = (text !== undefined || lists.length > 0) && item.status !== undefined;
  const events = lists.flatMap((key) =>
    listOf(item[key]).flatMap((part, index) => partEvents(fieldsOf(part), { ...at, [`${key}_index`]: index })),
  );
  if (text !== undefined) {
    const named = item.type === 'function_call' ? { name: item.name } : {};
    for (const delta of text.match(/.{1,8}/gs) ?? []) events.push({ type: `response.${name}.delta`, ...at, delta });
    events.push({ type: `response.${name}.done`, ...at, ...named, [field]: text });
  }
  return [
    { type: 'response.output_item.added', output_index, item: isBegun ? { ...begun, status: 'in_progress' } : begun },
    ...events,
    { type: 'response.output_item.done', output_index, item },
  ];
}

/** The text of each type of part: its field and its events. */
const PART_TEXTS: ReadonlyMap<unknown, readonly [field: string, events: string]> = new Map([
  ['output_text', ['text', 'output_text']],
  ['refusal', ['refusal', 'refusal']],
  ['reasoning_text', ['text', 'reasoning_text']],
  ['summary_text', ['text', 'reasoning_summary_text']],
]);

/** Builds the events of a part. `at` is its place. Parts of an unknown type are sent whole. */
function partEvents(part: Fields, at: Fields): Fields[] {
  const list = at.summary_index === undefined ? 'content_part' : 'reasoning_summary_part';
  const [field = '', name] = PART_TEXTS.get(part.type) ?? [];
  const text = textOf(part[field]);
  const events: Fields[] = [];
  const begun = { ...part };
  if (text !== undefined) {
    begun[field] = '';
    const words = wordsOf(text);
    const shares = sharesOf(listOf(part.logprobs), words.length);
    const logprobsOf = (tokens: unknown) => (part.type === 'output_text' ? { logprobs: tokens } : {});
    for (const [index, delta] of words.entries())
      events.push({ type: `response.${name}.delta`, ...at, delta, ...logprobsOf(shares[index]) });
    for (const key of ['annotations', 'logprobs']) if (Array.isArray(part[key])) begun[key] = [];
    for (const [annotation_index, annotation] of listOf(part.annotations).entries())
      events.push({ type: 'response.output_text.annotation.added', ...at, annotation_index, annotation });
    events.push({ type: `response.${name}.done`, ...at, [field]: text, ...logprobsOf(listOf(part.logprobs)) });
  }
  return [
    { type: `response.${list}.added`, ...at, part: begun },
    ...events,
    { type: `response.${list}.done`, ...at, part },
  ];
}
