// The events of complete answers, read by the folds that record streams and by the SDKs.
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import type { Fields } from '#src/payload/fields.ts';
import { answerEvents } from '#src/replay/events.ts';
import type { Fold } from '#src/services/answer.ts';
import { messageCall } from '#src/services/anthropic/calls.ts';
import type { CallReader } from '#src/services/call-reader.ts';
import { LineFold } from '#src/services/deltas.ts';
import { geminiGeneration } from '#src/services/gemini/calls.ts';
import { ollamaCalls } from '#src/services/ollama/calls.ts';
import { openaiCalls } from '#src/services/openai/calls.ts';
import { randomFrom } from '../faults/random.ts';

const WITH_USAGE = { stream: true, stream_options: { include_usage: true } };
const SEED = 20_261_127;
const CASES = 300;

const eventsOf = (call: string, answer: object, request: Fields = WITH_USAGE) =>
  answerEvents(call, answer as Fields, request)?.events ?? [];
const data = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
/** Returns the values of server-sent events. */
const valuesOf = (events: readonly string[]) =>
  events.map((event) => {
    const line = event.slice(event.indexOf('data: ') + 'data: '.length);
    return line === '[DONE]\n\n' ? '[DONE]' : JSON.parse(line);
  });

/** Makes random values. */
function generator(random: () => number) {
  const below = (count: number) => Math.floor(random() * count);
  const pick = <Item>(...items: readonly [Item, ...Item[]]): Item => items[below(items.length)] as Item;
  const list = <Item>(max: number, item: (at: number) => Item) =>
    Array.from({ length: below(max + 1) }, (_, at) => item(at));
  const text = () => list(6, () => pick('tea', ' ', '\n', '"\\', 'é😀', ' two words ', '\t')).join('');
  const maybe = (fields: () => object) => (random() < 0.5 ? fields() : {});
  const json = () => pick<object>({}, { query: text(), depth: { list: [1, null, text()] } }, { limit: below(9) });
  return { below, pick, list, text, maybe, json };
}
type Generator = ReturnType<typeof generator>;

const token = ({ text, below }: Generator) => ({ token: text(), logprob: below(5), bytes: [1, 2], top_logprobs: [] });
const tokens = (g: Generator) => g.list(8, () => token(g));

function chatAnswer(g: Generator) {
  const { pick, text, maybe, list, json } = g;
  const toolCall = (at: number) => ({
    id: `call_${at}`,
    ...pick<object>(
      { type: 'function', function: { name: 'look_up', arguments: JSON.stringify(json()) } },
      { type: 'custom', custom: { name: 'shell', input: text() } },
    ),
  });
  const choices = list(3, (index) => ({
    index,
    message: {
      role: 'assistant',
      content: pick(null, text()),
      ...maybe(() => ({ refusal: pick(null, text()) })),
      ...maybe(() => ({ [pick('reasoning_content', 'reasoning')]: text() })),
      ...maybe(() => ({ annotations: [{ type: 'url_citation', url_citation: { url: text(), start_index: 0 } }] })),
      ...maybe(() => ({
        audio: pick<unknown>(null, { id: 'audio_1' }, { id: 'audio_2', data: text(), expires_at: 5 }),
      })),
      ...maybe(() => ({ tool_calls: list(3, toolCall) })),
      ...maybe(() => ({ function_call: { name: 'old', arguments: text() } })),
    },
    ...maybe(() => ({
      logprobs: pick<unknown>(null, {
        content: pick(null, tokens(g)),
        ...maybe(() => ({ refusal: pick(null, tokens(g)) })),
      }),
    })),
    ...maybe(() => ({ content_filter_results: { hate: { filtered: false } } })),
    finish_reason: pick('stop', 'length', 'tool_calls'),
  }));
  const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 };
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'small',
    choices,
    ...maybe(() => ({ usage })),
  };
}

function textAnswer({ list, text, pick }: Generator) {
  const logprobs = () => ({ tokens: list(2, text), token_logprobs: [-1], text_offset: [0], top_logprobs: [{ a: -1 }] });
  const choices = list(3, (index) => ({
    index,
    text: text(),
    logprobs: pick<unknown>(null, logprobs()),
    finish_reason: 'stop',
  }));
  return { id: 'cmpl-1', object: 'text_completion', created: 1, model: 'small', choices, usage: { total_tokens: 7 } };
}

function responseAnswer(g: Generator) {
  const { list, text, pick, maybe, json } = g;
  const part = () =>
    pick<object>(
      { type: 'output_text', text: text(), annotations: list(2, () => ({ type: 'url_citation', url: text() })) },
      { type: 'output_text', text: text(), annotations: [], logprobs: tokens(g) },
      { type: 'refusal', refusal: text() },
      { type: 'new_part', value: json() },
    );
  const item = (at: number) => ({
    id: `item_${at}`,
    ...pick<object>(
      { type: 'message', role: 'assistant', status: 'completed', content: list(3, part) },
      {
        type: 'reasoning',
        summary: list(2, () => ({ type: 'summary_text', text: text() })),
        ...maybe(() => ({ content: list(2, () => ({ type: 'reasoning_text', text: text() })) })),
        ...maybe(() => ({ encrypted_content: text() })),
      },
      {
        type: 'function_call',
        call_id: 'call_1',
        name: 'look_up',
        arguments: JSON.stringify(json()),
        status: 'completed',
      },
      { type: 'mcp_call', server_label: 'docs', name: 'search', arguments: text(), output: text(), error: null },
      { type: 'custom_tool_call', call_id: 'call_2', name: 'shell', input: text() },
      { type: 'code_interpreter_call', code: pick(null, text()), outputs: null, status: 'completed' },
      { type: 'web_search_call', status: 'completed', action: { type: 'search', query: text() } },
      { type: 'new_item', value: json() },
    ),
  });
  return {
    id: 'resp_1',
    object: 'response',
    ...pick<object>(
      { status: 'completed', error: null },
      { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } },
      { status: 'failed', error: { code: 'server_error', message: text() } },
    ),
    model: 'small',
    output: list(4, item),
    usage: { input_tokens: 3 },
  };
}

function messageAnswer({ list, text, pick, maybe, json }: Generator) {
  const citation = () => ({ type: 'char_location', cited_text: text(), document_title: null, start_char_index: 0 });
  const block = (at: number) =>
    pick<object>(
      { type: 'text', text: text(), ...maybe(() => ({ citations: pick(null, list(2, citation)) })) },
      { type: 'thinking', thinking: text(), ...maybe(() => ({ signature: text() })) },
      { type: 'redacted_thinking', data: text() },
      { type: pick('tool_use', 'server_tool_use', 'mcp_tool_use'), id: `toolu_${at}`, name: 'look_up', input: json() },
      { type: 'web_search_tool_result', tool_use_id: 'a', content: [{ type: 'web_search_result', url: text() }] },
      { type: 'new_block', input: json() },
    );
  const content = list(5, block);
  return {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'small',
    content,
    stop_reason: 'end_turn',
    ...maybe(() => ({ stop_sequence: pick(null, 'END') })),
    ...maybe(() => ({ container: pick<unknown>(null, { id: 'container_1' }) })),
    ...maybe(() => ({ context_management: { applied_edits: [] } })),
    usage: { input_tokens: 3, output_tokens: 9, server_tool_use: pick<unknown>(null, { web_search_requests: 1 }) },
  };
}

function geminiAnswer({ list, text, maybe, json }: Generator) {
  const candidates = list(2, (index) => ({
    index,
    content: {
      role: 'model',
      // The fold joins texts that follow each other.
      parts: list(3, (at) => [
        { text: `${text()}.`, ...maybe(() => ({ thought: true })) },
        { functionCall: { name: `look_up_${at}`, args: json() }, thoughtSignature: text() },
      ]).flat(),
    },
    finishReason: 'STOP',
    ...maybe(() => ({ citationMetadata: { citationSources: [{ uri: text() }] } })),
  }));
  return { candidates, modelVersion: 'small', responseId: text(), usageMetadata: { totalTokenCount: 3 } };
}

const OLLAMA = { model: 'small', created_at: '2026-01-01T00:00:00Z', done: true, done_reason: 'stop', eval_count: 4 };

function ollamaChat({ list, text, maybe, json }: Generator) {
  const tool_calls = () => list(2, (index) => ({ function: { index, name: 'look_up', arguments: json() } }));
  const message = { role: 'assistant', content: text(), ...maybe(() => ({ thinking: text() })) };
  return { ...OLLAMA, message: { ...message, ...maybe(() => ({ tool_calls: tool_calls() })) } };
}

function ollamaGeneration({ text, maybe }: Generator) {
  return { ...OLLAMA, response: text(), ...maybe(() => ({ thinking: text() })), ...maybe(() => ({ context: [1, 2] })) };
}

test.each<[CallReader, (g: Generator) => object]>([
  [openaiCalls.chat, chatAnswer],
  [openaiCalls.completion, textAnswer],
  [openaiCalls.response, responseAnswer],
  [messageCall, messageAnswer],
  [geminiGeneration, geminiAnswer],
  [ollamaCalls.chat, ollamaChat],
  [ollamaCalls.generate, ollamaGeneration],
])('the fold of $name combines the events to the same answer', (reader, generate) => {
  const g = generator(randomFrom(SEED));
  for (let at = 0; at < CASES; at++) {
    const answer = generate(g);
    const prefix = reader.name.startsWith('ollama') ? '' : 'data:';
    const fold = new LineFold(reader.fold?.() as Fold, prefix);
    for (const event of eventsOf(reader.name, answer)) fold.add(event, false);
    expect(JSON.parse(JSON.stringify(fold.result())), `seed ${SEED}, case ${at}`).toEqual(answer);
    expect(fold.error).toBeUndefined();
    expect(fold.isUnreadable).toBe(false);
  }
});

test('calls that are not streamed have no events', () => {
  expect(answerEvents('ollama.embed', {}, {})).toBeUndefined();
});

describe('the exact events', () => {
  test('of a chat completion', () => {
    const head = { id: 'chatcmpl-1', created: 1, model: 'small' };
    const [You, tea] = [
      { token: 'You', logprob: -1 },
      { token: ' said tea', logprob: -2 },
    ];
    const call = { id: 'call_1', type: 'function' };
    const answer = {
      ...head,
      object: 'chat.completion',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'You said tea', refusal: null },
          logprobs: { content: [You, tea], refusal: null },
          finish_reason: 'stop',
        },
        {
          index: 1,
          message: {
            role: 'assistant',
            content: null,
            tool_calls: [{ ...call, function: { name: 'look_up', arguments: '{"a":1}' } }],
          },
          logprobs: null,
          finish_reason: 'tool_calls',
        },
      ],
      usage: { total_tokens: 7 },
    };
    const chunk = (index: number, delta: object, logprobs: unknown = null, finish_reason: string | null = null) =>
      data({
        ...head,
        object: 'chat.completion.chunk',
        usage: null,
        choices: [{ index, delta, logprobs, finish_reason }],
      });
    const first = { index: 0, ...call, function: { name: 'look_up', arguments: '' } };
    const argumentsOf = (json: string) => ({ tool_calls: [{ index: 0, function: { arguments: json } }] });
    const expected = [
      chunk(0, { role: 'assistant', content: '', refusal: null }, { content: [], refusal: null }),
      chunk(1, { role: 'assistant', content: null }),
      chunk(0, { content: 'You ' }, { content: [You], refusal: null }),
      chunk(1, { tool_calls: [first] }),
      chunk(0, { content: 'said ' }, { content: [tea], refusal: null }),
      chunk(1, argumentsOf('{"a"')),
      chunk(0, { content: 'tea' }, { content: [], refusal: null }),
      chunk(1, argumentsOf(':1}')),
      chunk(0, {}, null, 'stop'),
      chunk(1, {}, null, 'tool_calls'),
      data({ ...head, object: 'chat.completion.chunk', usage: { total_tokens: 7 }, choices: [] }),
      'data: [DONE]\n\n',
    ];
    expect(valuesOf(eventsOf('openai.chat.completions', answer))).toEqual(valuesOf(expected));
    expect(eventsOf('openai.chat.completions', answer, { stream: true }).join('')).not.toContain('usage');
  });

  test('of a text completion', () => {
    const head = { id: 'cmpl-1', object: 'text_completion' };
    const answer = { ...head, choices: [{ index: 0, text: ' You said', logprobs: null, finish_reason: 'stop' }] };
    expect(valuesOf(eventsOf('openai.completions', answer, {}))).toEqual([
      { ...head, choices: [{ index: 0, text: ' You', logprobs: null, finish_reason: null }] },
      { ...head, choices: [{ index: 0, text: ' said', logprobs: null, finish_reason: 'stop' }] },
      '[DONE]',
    ]);
  });

  test('of a response', () => {
    const summary = { type: 'summary_text', text: 'Hm' };
    const annotation = { type: 'url_citation', url: 'http://localhost/page' };
    const part = { type: 'output_text', text: 'You said', annotations: [annotation] };
    const reasoning = { id: 'rs_1', type: 'reasoning', summary: [summary], encrypted_content: 'e' };
    const message = { id: 'msg_1', type: 'message', role: 'assistant', status: 'completed', content: [part] };
    const search = { id: 'ws_1', type: 'web_search_call', status: 'completed' };
    const answer = {
      id: 'resp_1',
      status: 'completed',
      error: null,
      output: [reasoning, message, search],
      usage: { a: 1 },
    };
    const begun = { id: 'resp_1', status: 'in_progress', error: null, output: [], usage: null };
    const inReasoning = { output_index: 0, item_id: 'rs_1', summary_index: 0 };
    const inMessage = { output_index: 1, item_id: 'msg_1', content_index: 0 };
    const events = [
      { type: 'response.created', response: begun },
      { type: 'response.in_progress', response: begun },
      { type: 'response.output_item.added', output_index: 0, item: { ...reasoning, summary: [] } },
      { type: 'response.reasoning_summary_part.added', ...inReasoning, part: { ...summary, text: '' } },
      { type: 'response.reasoning_summary_text.delta', ...inReasoning, delta: 'Hm' },
      { type: 'response.reasoning_summary_text.done', ...inReasoning, text: 'Hm' },
      { type: 'response.reasoning_summary_part.done', ...inReasoning, part: summary },
      { type: 'response.output_item.done', output_index: 0, item: reasoning },
      { type: 'response.output_item.added', output_index: 1, item: { ...message, status: 'in_progress', content: [] } },
      { type: 'response.content_part.added', ...inMessage, part: { type: 'output_text', text: '', annotations: [] } },
      { type: 'response.output_text.delta', ...inMessage, delta: 'You ', logprobs: [] },
      { type: 'response.output_text.delta', ...inMessage, delta: 'said', logprobs: [] },
      { type: 'response.output_text.annotation.added', ...inMessage, annotation_index: 0, annotation },
      { type: 'response.output_text.done', ...inMessage, text: 'You said', logprobs: [] },
      { type: 'response.content_part.done', ...inMessage, part },
      { type: 'response.output_item.done', output_index: 1, item: message },
      { type: 'response.output_item.added', output_index: 2, item: search },
      { type: 'response.output_item.done', output_index: 2, item: search },
      { type: 'response.completed', response: answer },
    ];
    const expected = events.map((event, sequence_number) => ({ ...event, sequence_number }));
    const built = eventsOf('openai.responses', answer);
    expect(valuesOf(built)).toEqual(expected);
    expect(built.map((event) => event.split('\n', 1)[0])).toEqual(events.map(({ type }) => `event: ${type}`));
  });

  test('of a message', () => {
    const citation = { type: 'char_location', cited_text: 'tea' };
    const answer = {
      id: 'msg_1',
      content: [
        { type: 'thinking', thinking: 'Hm', signature: 's' },
        { type: 'text', text: 'You said', citations: [citation] },
        { type: 'tool_use', id: 'toolu_1', name: 'look_up', input: { a: 1 } },
        { type: 'redacted_thinking', data: 'd' },
      ],
      stop_reason: 'tool_use',
      usage: { input_tokens: 3, output_tokens: 9 },
    };
    const usage = { input_tokens: 3, output_tokens: 1 };
    const start = (index: number, content_block: object) => ({ type: 'content_block_start', index, content_block });
    const delta = (index: number, value: object) => ({ type: 'content_block_delta', index, delta: value });
    const stop = (index: number) => ({ type: 'content_block_stop', index });
    const expected = [
      { type: 'message_start', message: { id: 'msg_1', content: [], stop_reason: null, usage } },
      start(0, { type: 'thinking', thinking: '', signature: '' }),
      { type: 'ping' },
      delta(0, { type: 'thinking_delta', thinking: 'Hm' }),
      delta(0, { type: 'signature_delta', signature: 's' }),
      stop(0),
      start(1, { type: 'text', text: '', citations: [] }),
      delta(1, { type: 'text_delta', text: 'You' }),
      delta(1, { type: 'text_delta', text: ' said' }),
      delta(1, { type: 'citations_delta', citation }),
      stop(1),
      start(2, { type: 'tool_use', id: 'toolu_1', name: 'look_up', input: {} }),
      delta(2, { type: 'input_json_delta', partial_json: '' }),
      delta(2, { type: 'input_json_delta', partial_json: '{"a":1}' }),
      stop(2),
      start(3, { type: 'redacted_thinking', data: 'd' }),
      stop(3),
      { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: answer.usage },
      { type: 'message_stop' },
    ];
    const built = eventsOf('anthropic.messages', answer);
    expect(valuesOf(built)).toEqual(expected);
    expect(built.map((event) => event.split('\n', 1)[0])).toEqual(expected.map(({ type }) => `event: ${type}`));
  });

  test("of Gemini's content", () => {
    const parts = [{ text: 'Hm', thought: true }, { functionCall: { name: 'look_up', args: {} } }];
    const candidate = { index: 0, content: { role: 'model', parts }, finishReason: 'STOP' };
    expect(eventsOf('gemini.generateContent', { candidates: [candidate], modelVersion: 'small' })).toEqual([
      data({ candidates: [{ index: 0, content: { role: 'model', parts: parts.slice(0, 1) } }], modelVersion: 'small' }),
      data({
        candidates: [{ ...candidate, content: { role: 'model', parts: parts.slice(1) } }],
        modelVersion: 'small',
      }),
    ]);
    const blocked = { promptFeedback: { blockReason: 'SAFETY' } };
    expect(eventsOf('gemini.generateContent', blocked)).toEqual([data(blocked)]);
  });

  test("of Ollama's chat", () => {
    const tool_calls = [{ function: { name: 'look_up', arguments: {} } }];
    const answer = {
      model: 'small',
      message: { role: 'assistant', content: 'You said', tool_calls },
      done: true,
      eval_count: 2,
    };
    const line = (message: object, others: object = { done: false }) => ({
      model: 'small',
      message: { role: 'assistant', content: '', ...message },
      ...others,
    });
    const { contentType, events } = answerEvents('ollama.chat', answer, {}) ?? {};
    expect(contentType).toBe('application/x-ndjson');
    expect(events?.map((event) => JSON.parse(event))).toEqual([
      line({ content: 'You ' }),
      line({ content: 'said' }),
      line({ tool_calls }),
      line({}, { done: true, eval_count: 2 }),
    ]);
    expect(events?.every((event) => event.indexOf('\n') === event.length - 1)).toBe(true);
  });

  test("of Ollama's completion", () => {
    const answer = { model: 'small', response: 'tea', thinking: 'Hm', done: true, context: [1] };
    expect(eventsOf('ollama.generate', answer).map((event) => JSON.parse(event))).toEqual([
      { model: 'small', response: '', thinking: 'Hm', done: false },
      { model: 'small', response: 'tea', thinking: '', done: false },
      { model: 'small', response: '', thinking: '', done: true, context: [1] },
    ]);
  });
});

describe('the SDKs combine the events to the same answer', () => {
  /** A client's `fetch` that streams an answer. */
  const fetchOf = (call: string, answer: object) => async () => {
    const { contentType = '', events = [] } = answerEvents(call, answer as Fields, WITH_USAGE) ?? {};
    return new Response(events.join(''), { headers: { 'content-type': contentType } });
  };
  const openaiOf = (call: string, answer: object) =>
    new OpenAI({ apiKey: 'none', maxRetries: 0, fetch: fetchOf(call, answer) });
  /** Removes the fields that the SDKs add for their parsers. */
  const plain = (value: unknown) =>
    JSON.parse(
      JSON.stringify(value, (key, one) =>
        /^(parsed|output_parsed|output_text|parsed_output|parsed_arguments)$/.test(key) ? undefined : one,
      ),
    );
  const messages = [{ role: 'user' as const, content: 'What is tea?' }];
  const logprob = (word: string) => ({ token: word, logprob: -1, bytes: null, top_logprobs: [] });

  test('openai: chat completion', async () => {
    const tool = { id: 'call_1', type: 'function', function: { name: 'look_up', arguments: '{"a": "b c"}' } };
    const choice = (index: number, message: object, others: object = {}) => ({
      index,
      message: { role: 'assistant', content: null, refusal: null, ...message },
      logprobs: null,
      finish_reason: 'stop',
      ...others,
    });
    const answer = {
      id: 'chatcmpl-1',
      object: 'chat.completion',
      created: 1,
      model: 'small',
      choices: [
        choice(0, { content: 'You said tea' }, { logprobs: { content: ['You', ' said'].map(logprob), refusal: null } }),
        choice(1, { refusal: 'I cannot help.' }),
        choice(2, { tool_calls: [tool, { ...tool, id: 'call_2' }] }, { finish_reason: 'tool_calls' }),
        choice(3, { audio: { id: 'audio_1', data: 'AAAA', transcript: 'tea', expires_at: 5 } }),
      ],
      usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
      system_fingerprint: 'fp',
    };
    const stream = openaiOf('openai.chat.completions', answer).chat.completions.stream({ model: 'small', messages });
    expect(plain(await stream.finalChatCompletion())).toEqual(answer);
  });

  test('openai: response', async () => {
    const g = generator(randomFrom(SEED));
    for (let at = 0; at < 20; at++) {
      const answer = responseAnswer(g);
      const stream = openaiOf('openai.responses', answer).responses.stream({ model: 'small', input: 'What is tea?' });
      expect(plain(await stream.finalResponse()), `seed ${SEED}, case ${at}`).toEqual(answer);
    }
  });

  test('@anthropic-ai/sdk: message', async () => {
    const answer = {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'small',
      content: [
        { type: 'thinking', thinking: 'The question has three words.', signature: 'sign' },
        { type: 'redacted_thinking', data: 'd' },
        { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'tea in "cups"' } },
        {
          type: 'web_search_tool_result',
          tool_use_id: 'srvtoolu_1',
          content: [{ type: 'web_search_result', url: 'u' }],
        },
        { type: 'text', text: 'You said:\n tea ', citations: [{ type: 'char_location', cited_text: 'tea' }] },
        { type: 'tool_use', id: 'toolu_1', name: 'look_up', input: {} },
      ],
      stop_reason: 'tool_use',
      stop_sequence: null,
      container: { id: 'container_1', expires_at: '2026-01-01T00:00:00Z' },
      usage: { input_tokens: 3, output_tokens: 9, server_tool_use: { web_search_requests: 1 } },
    };
    const client = new Anthropic({ apiKey: 'none', maxRetries: 0, fetch: fetchOf('anthropic.messages', answer) });
    const stream = client.messages.stream({ model: 'small', max_tokens: 10, messages });
    expect(plain(await stream.finalMessage())).toEqual(answer);
  });
});
