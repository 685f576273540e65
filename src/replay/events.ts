import { defined, exactJson, type Fields, fieldsOf, listOf, textOf, without } from '../payload/fields.ts';
import { interleaved, jsonEvent, namedEvent, wordsOf } from './event-text.ts';
import { choicesEvents, responseEvents } from './openai-events.ts';

/** The body of a streamed answer. */
export interface AnswerEvents {
  /** The header `content-type`. */
  readonly contentType: string;
  /** The text of each event, with the line breaks that end it. */
  readonly events: string[];
}

const EVENT_STREAM = 'text/event-stream; charset=utf-8';
const JSON_LINES = 'application/x-ndjson';

const BUILDERS: ReadonlyMap<
  string,
  readonly [contentType: string, events: (answer: Fields, request: Fields) => string[]]
> = new Map([
  ['openai.chat.completions', [EVENT_STREAM, choicesEvents]],
  ['openai.completions', [EVENT_STREAM, choicesEvents]],
  ['mistral.fim', [EVENT_STREAM, choicesEvents]],
  ['openai.responses', [EVENT_STREAM, responseEvents]],
  ['anthropic.messages', [EVENT_STREAM, messageEvents]],
  ['gemini.generateContent', [EVENT_STREAM, contentEvents]],
  ['ollama.chat', [JSON_LINES, chatLines]],
  ['ollama.generate', [JSON_LINES, generationLines]],
]);

/** Whether `answerEvents` knows the streamed form of a call's answers. */
export function canStream(call: string): boolean {
  return BUILDERS.has(call);
}

/**
 * Converts a complete answer to the events of its streamed form. The folds of `integrations/` combine these events to
 * the same answer, with these differences: OpenAI's completions contain their usage only if the request asks for it,
 * and candidates of Gemini always have an index and content, without empty texts.
 *
 * `call` is the name of the call's reader, for example `openai.responses`. Returns undefined if such answers are not
 * streamed.
 */
export function answerEvents(call: string, answer: Fields, request: Fields): AnswerEvents | undefined {
  const [contentType, events] = BUILDERS.get(call) ?? [];
  return contentType === undefined || events === undefined
    ? undefined
    : { contentType, events: events(answer, request) };
}

/** Fields of Anthropic's messages that are known at their end. */
const LAST_FIELDS = ['stop_reason', 'stop_sequence', 'stop_details', 'container'];
/** Fields of the usage that are known at the end. `output_tokens` is also sent at the start. */
const LAST_USAGE: ReadonlySet<string> = new Set(['output_tokens_details', 'server_tool_use']);

/** Builds the events of Anthropic's message. */
function messageEvents(answer: Fields): string[] {
  const lastKeys = LAST_FIELDS.filter((key) => answer[key] !== undefined);
  const usage = Object.entries(fieldsOf(answer.usage)).filter(([key, value]) => value === null || !LAST_USAGE.has(key));
  const message = {
    ...answer,
    content: [],
    ...Object.fromEntries(lastKeys.map((key) => [key, null])),
    usage: { ...Object.fromEntries(usage), output_tokens: 1 },
  };
  const events = [
    { type: 'message_start', message },
    ...listOf(answer.content).flatMap((block, index) => blockEvents(fieldsOf(block), index)),
    {
      type: 'message_delta',
      delta: Object.fromEntries(lastKeys.map((key) => [key, answer[key]])),
      usage: answer.usage,
    },
    { type: 'message_stop' },
  ];
  return events.map(namedEvent);
}

function blockEvents(block: Fields, index: number): Fields[] {
  const { begun, deltas } = partsOf(block);
  const start = { type: 'content_block_start', index, content_block: begun };
  return [
    start,
    ...(index === 0 ? [{ type: 'ping' }] : []),
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ];
}

/** Splits a block into its first state and its deltas. Blocks of all other types are sent whole. */
function partsOf(block: Fields): { begun: Fields; deltas: Fields[] } {
  const type = textOf(block.type) ?? '';
  const wordDeltas = (kind: string, key: string, text: unknown) =>
    wordsOf(textOf(text) ?? '', 'space before').map((word) => ({ type: kind, [key]: word }));
  if (type === 'text') {
    const citations = listOf(block.citations).map((citation) => ({ type: 'citations_delta', citation }));
    const begun = { ...block, text: '', ...(Array.isArray(block.citations) && { citations: [] }) };
    return { begun, deltas: [...wordDeltas('text_delta', 'text', block.text), ...citations] };
  }
  if (type === 'thinking') {
    const { signature } = block;
    const signed = signature === undefined ? [] : [{ type: 'signature_delta', signature }];
    const begun = { ...block, thinking: '', ...(signed.length > 0 && { signature: '' }) };
    return { begun, deltas: [...wordDeltas('thinking_delta', 'thinking', block.thinking), ...signed] };
  }
  // `tool_use`, `server_tool_use` and `mcp_tool_use`.
  if (type.endsWith('tool_use') && block.input !== undefined) {
    const json = exactJson(block.input);
    const deltas = [
      { type: 'input_json_delta', partial_json: '' },
      ...wordDeltas('input_json_delta', 'partial_json', json),
    ];
    return { begun: { ...block, input: {} }, deltas };
  }
  return { begun: block, deltas: [] };
}

/** Builds one chunk for each part of Gemini's content. The last chunk of a candidate contains its other fields. */
function contentEvents({ candidates, ...head }: Fields): string[] {
  const chunks = interleaved(listOf(candidates).map((candidate, index) => candidateChunks(fieldsOf(candidate), index)));
  if (chunks.length === 0) return [jsonEvent(defined({ candidates, ...head }))];
  return chunks.map((candidate) => jsonEvent({ candidates: [candidate], ...head }));
}

function candidateChunks({ index, content, ...others }: Fields, at: number): Fields[] {
  const own = { index: index ?? at };
  const parts = listOf(fieldsOf(content).parts);
  const chunks: Fields[] = parts.map((part) => ({ ...own, content: { ...fieldsOf(content), parts: [part] } }));
  return [...chunks.slice(0, -1), { ...own, content, ...chunks.at(-1), ...others }];
}

function chatLines({ message, ...answer }: Fields): string[] {
  return linesOf(answer, fieldsOf(message), ['thinking', 'content'], (fields) => ({ message: fields }));
}

function generationLines(answer: Fields): string[] {
  const { response, thinking, ...others } = answer;
  return linesOf(others, defined({ response, thinking }), ['thinking', 'response'], (fields) => fields);
}

/** Builds Ollama's lines: one for each word, one for tool calls and images, and one that ends the answer. */
function linesOf(
  answer: Fields,
  message: Fields,
  textKeys: readonly string[],
  placed: (message: Fields) => Fields,
): string[] {
  const texts = textKeys.filter((key) => textOf(message[key]) !== undefined);
  const { role } = message;
  const empty = defined({ role, ...Object.fromEntries(texts.map((key) => [key, ''])) });
  const others = without(message, new Set(['role', ...texts]));
  const deltas: Fields[] = texts.flatMap((key) => wordsOf(message[key] as string).map((word) => ({ [key]: word })));
  if (Object.keys(others).length > 0) deltas.push(others);
  const head = defined({ model: answer.model, created_at: answer.created_at });
  return [
    ...deltas.map((delta) => ({ ...head, ...placed({ ...empty, ...delta }), done: false })),
    { ...answer, ...placed(empty) },
  ].map((line) => `${exactJson(line)}\n`);
}
