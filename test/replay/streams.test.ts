// Streams that a replay answers with the recorded bytes.
import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import { Mistral } from '@mistralai/mistralai';
import { CohereClientV2 } from 'cohere-ai';
import { Ollama } from 'ollama';
import OpenAI from 'openai';
import { expect, test } from 'vitest';
import { traceable } from '#src/instrument/traceable.ts';
import { wrapOpenAI } from '#src/integrations/openai/client.ts';
import { redact } from '#src/payload/redaction/redact.ts';
import { replay } from '#src/replay/run-replay.ts';
import type { RecordedRun, RecordOptions } from '#src/testing/record-runs.ts';
import { serve } from '../http/server.ts';
import { chunksOf } from '../integrations/local-openai.ts';
import { json, serveWire } from '../integrations/wire-server.ts';
import { responseEvents } from '../support/local-model/openai-responses.js';
import { fixtureFile, fixtureFrom, recordedProgram } from './recorded-fixture.ts';

const EVENTS = 'text/event-stream; charset=utf-8';
const model = 'small';
const prompt = 'What is tea?';
const messages = [{ role: 'user' as const, content: prompt }];
const data = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;
const line = (value: object): string => `${JSON.stringify({ model, created_at: 'now', done: false, ...value })}\n`;
const DONE = 'data: [DONE]\n\n';

const chunk = (delta: object, finish_reason: string | null = null): string =>
  data({
    ...{ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model, system_fingerprint: 'fp' },
    choices: [{ index: 0, delta, logprobs: null, finish_reason }],
  });
const argumentsChunk = (text: string): string =>
  chunk({
    tool_calls: [
      {
        index: 0,
        ...(text === '' && { id: 'call_1', type: 'function' }),
        function: { name: text === '' ? 'pour' : undefined, arguments: text },
      },
    ],
  });
const textChunk = (text: string, finish_reason: string | null = null): string =>
  data({ id: 'cmpl-1', object: 'text_completion', created: 1, model, choices: [{ index: 0, text, finish_reason }] });
const named = (value: { readonly type: string; readonly [key: string]: unknown }): string =>
  `event: ${value.type}\n${data(value)}`;
const cohere = (type: string, delta: object, index?: number): string => named({ type, index, delta });
const gemini = (candidate: object): string =>
  data({ candidates: [candidate], modelVersion: model }).replaceAll('\n', '\r\n');

const answered = { id: 'resp_1', object: 'response', status: 'completed', model, usage: { input_tokens: 3 } };
const content = [{ type: 'output_text', text: 'Té 🍵', annotations: [] }];
const output = [{ id: 'msg_1', type: 'message', role: 'assistant', status: 'completed', content }];
const answer = { id: 'msg_1', type: 'message', role: 'assistant', model, content: [], stop_reason: null };

const openai = (url: string): OpenAI => new OpenAI({ apiKey: 'none', baseURL: `${url}/v1`, maxRetries: 0 });

type Row = [path: string, type: string, events: readonly string[], call: (url: string) => Promise<unknown>];

const ROWS: readonly Row[] = [
  [
    '/v1/chat/completions',
    EVENTS,
    [
      ': OPENROUTER PROCESSING\n\n',
      chunk({ role: 'assistant', content: '', refusal: null }),
      chunk({ content: 'Té 🍵' }),
      ...['', '{"cups":', '2}'].map(argumentsChunk),
      chunk({}, 'tool_calls'),
      DONE,
    ],
    (url) => openai(url).chat.completions.stream({ model, messages }).finalChatCompletion(),
  ],
  [
    '/v1/completions',
    EVENTS,
    [textChunk('Té '), textChunk('🍵', 'stop'), DONE],
    async (url) => chunksOf(await openai(url).completions.create({ model, prompt, stream: true })),
  ],
  [
    '/v1/fim/completions',
    EVENTS,
    [chunk({ role: 'assistant', content: 'Té ' }), chunk({ content: '🍵' }, 'stop'), DONE],
    async (url) => chunksOf(await new Mistral({ apiKey: 'none', serverURL: url }).fim.stream({ model, prompt })),
  ],
  [
    '/v1/responses',
    EVENTS,
    responseEvents({ ...answered, output }),
    (url) => openai(url).responses.stream({ model, input: prompt }).finalResponse(),
  ],
  [
    '/v1/messages',
    EVENTS,
    [
      named({ type: 'message_start', message: { ...answer, usage: { input_tokens: 3, output_tokens: 1 } } }),
      named({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
      named({ type: 'ping' }),
      named({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Té 🍵' } }),
      named({ type: 'content_block_stop', index: 0 }),
      named({
        type: 'content_block_start',
        index: 1,
        content_block: { type: 'thinking', thinking: '', signature: '' },
      }),
      named({
        type: 'content_block_delta',
        index: 1,
        delta: { type: 'signature_delta', signature: 'EqQBCkgIARABGAIi' },
      }),
      named({ type: 'content_block_stop', index: 1 }),
      named({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } }),
      named({ type: 'message_stop' }),
    ],
    (url) =>
      new Anthropic({ apiKey: 'none', baseURL: url, maxRetries: 0 }).messages
        .stream({ model, max_tokens: 10, messages })
        .finalMessage(),
  ],
  [
    '/v1beta/models/small:streamGenerateContent',
    'text/event-stream',
    [
      gemini({ content: { role: 'model', parts: [{ text: 'Té ' }] } }),
      gemini({ content: { role: 'model', parts: [{ text: '🍵', thoughtSignature: 'c2ln' }] }, finishReason: 'STOP' }),
    ],
    async (url) => {
      const client = new GoogleGenAI({ apiKey: 'none', httpOptions: { baseUrl: url } });
      const chunks = await chunksOf(await client.models.generateContentStream({ model, contents: prompt }));
      return chunks.map(({ candidates }) => candidates);
    },
  ],
  [
    '/api/chat',
    'application/x-ndjson',
    [
      line({ message: { role: 'assistant', content: 'Té ' } }),
      line({ message: { role: 'assistant', content: '🍵' }, done: true, done_reason: 'stop', eval_count: 2 }),
    ],
    async (url) => chunksOf(await new Ollama({ host: url }).chat({ model, messages, stream: true })),
  ],
  [
    '/api/generate',
    'application/x-ndjson',
    [line({ response: 'Té ' }), line({ response: '🍵', done: true, context: [1, 2] })],
    async (url) => chunksOf(await new Ollama({ host: url }).generate({ model, prompt, stream: true })),
  ],
  [
    '/v2/chat',
    'text/event-stream',
    [
      cohere('message-start', { message: { role: 'assistant', content: [], tool_calls: [] } }),
      cohere('content-start', { message: { content: { type: 'text', text: '' } } }, 0),
      cohere('content-delta', { message: { content: { text: 'Té 🍵' } } }, 0),
      cohere('content-end', {}, 0),
      cohere('message-end', { finish_reason: 'COMPLETE', usage: { tokens: { input_tokens: 5, output_tokens: 3 } } }),
    ],
    async (url) => {
      const client = new CohereClientV2({ token: 'none', environment: url, logging: { silent: true } } as never);
      return chunksOf(await client.chatStream({ model, messages }));
    },
  ],
];

/** A server that has ended. */
const NOWHERE = 'http://127.0.0.1:9';

/** Records a program, and replays it without a service. Returns the results of the program and its model calls. */
async function twice(url: string, call: (url: string) => Promise<unknown>) {
  const results: unknown[] = [];
  const program = (at: string) => traceable(async () => void results.push(await call(at)), { name: 'agent' })();
  const recorded = await recordedProgram(() => program(url));
  const { runs } = await replay(fixtureFile(recorded), { run: () => program(NOWHERE) });
  const outputsOf = (all: readonly Pick<RecordedRun, 'run_type' | 'outputs'>[]) =>
    all.filter(({ run_type }) => run_type === 'llm').map(({ outputs }) => outputs);
  const [first, second] = results;
  return { first, second, recorded: outputsOf(recorded), replayed: outputsOf(runs) };
}

/** A request that each of the services accepts. */
const body = JSON.stringify({ model, messages, prompt, input: prompt, contents: prompt, max_tokens: 9, stream: true });

async function chunksAt(url: string, last?: string, sent = body): Promise<string[]> {
  const { headers, body: stream } = await fetch(url, { method: 'POST', body: sent });
  const texts = [`${headers.get('content-type')}`];
  for await (const bytes of stream ?? []) {
    texts.push(Buffer.from(bytes).toString());
    if (last !== undefined && texts.at(-1)?.includes(last)) break;
  }
  return texts;
}

/** Cuts a text, also within characters, and before its last byte. */
function piecesOf(text: string): Uint8Array[] {
  const bytes = Buffer.from(text);
  const starts = Array.from({ length: Math.floor((bytes.length - 2) / 7) + 1 }, (_, at) => at * 7);
  return [...starts, bytes.length - 1].map((start, at, all) => bytes.subarray(start, all[at + 1]));
}

test.each(ROWS)('a stream of %s is replayed byte for byte, with a chunk for each event', async (path, type, events) => {
  const url = await serveWire({ type, parts: piecesOf(events.join('')) });
  const { first, second, recorded, replayed } = await twice(url, (at) => chunksAt(`${at}${path}`));
  expect((first as string[])[0]).toBe(type);
  expect(second).toEqual([type, ...events]);
  expect(JSON.stringify(recorded)).toContain('🍵');
  expect(replayed).toEqual(recorded);
});

test.each(ROWS)('an SDK reads the same answer from a replayed stream of %s', async (_, type, events, call) => {
  const url = await serveWire({ type, parts: events });
  const { first, second, recorded, replayed } = await twice(url, call);
  expect(JSON.stringify(first)).toContain('🍵');
  expect(JSON.stringify(second)).toBe(JSON.stringify(first));
  expect(replayed).toEqual(recorded);
});

const CHAT = '/v1/chat/completions';
const words = ['One ', 'two ', 'three'].map((text) => chunk({ content: text }));

test('a program that stops reading a stream stops there again', async () => {
  const url = await serveWire({ type: EVENTS, parts: words.slice(0, 2), staysOpen: true });
  const { second, recorded, replayed } = await twice(url, (at) => chunksAt(`${at}${CHAT}`, 'two'));
  expect(second).toEqual([EVENTS, ...words.slice(0, 2)]);
  expect(recorded).toMatchObject([{ choices: [{ message: { content: 'One two ' } }] }]);
  expect(replayed).toEqual(recorded);
});

test('an event that was cut off is left out', async () => {
  const { url } = await serve((_, response) => {
    response.writeHead(200, { 'content-type': EVENTS });
    response.write(words.join('').slice(0, -40), () => response.destroy());
  });
  const seen: string[] = [];
  const call = async (at: string) => {
    const { body: stream } = await fetch(`${at}${CHAT}`, { method: 'POST', body });
    for await (const bytes of stream ?? []) seen.push(Buffer.from(bytes).toString());
  };
  const program = (at: string) => traceable(call, { name: 'agent' })(at).catch((error: Error) => error.message);
  const recorded = await recordedProgram(() => program(url));
  seen.length = 0;
  await replay(fixtureFile(recorded), { run: () => program(NOWHERE) });
  expect(seen).toEqual(words.slice(0, 2));
});

test('a request without a stream does not get one', async () => {
  const [path, type, events] = ROWS.find(([address]) => address.endsWith(':streamGenerateContent')) as Row;
  const url = await serveWire({ type, parts: events });
  const ask = (address: string) => chunksAt(address, undefined, JSON.stringify({ contents: prompt }));
  const recorded = await recordedProgram(() => ask(`${url}${path}`));
  const run = () => ask(`${NOWHERE}${path.replace('streamGenerate', 'generate')}`);
  await expect(replay(fixtureFile(recorded), { run })).rejects.toThrow('  stream: recorded true, got nothing');
});

test('a streamed request that gets JSON gets JSON again', async () => {
  const completion = { object: 'chat.completion', choices: [{ index: 0, message: { content: '🍵' } }] };
  const { first, second } = await twice(await serveWire(json(completion)), (at) => chunksAt(`${at}${CHAT}`));
  expect(second).toEqual(first);
});

/** Records a wrapped client that reads a stream. Returns the attachments as text, and why the call cannot be replayed. */
async function missingOf(events: readonly string[], options: RecordOptions, variables?: { RUNSPAN_EXCHANGES: string }) {
  const url = await serveWire({ type: EVENTS, parts: events });
  const call = async () =>
    chunksOf(await wrapOpenAI(openai(url)).chat.completions.create({ model, messages, stream: true }));
  const runs = await recordedProgram(call, options, variables);
  const texts = runs.flatMap(({ attachments = [] }) =>
    attachments.map(({ bytes }) => Buffer.from(bytes as Uint8Array)),
  );
  return { attached: texts.join(), missing: fixtureFrom(runs).missing };
}

const NOT_SHOWN = 'its answer contains a secret or is longer than a limit, so its stream is not recorded';
const patterns = { redact: redact({ patterns: [/key-\d+/] }) };

test.each<[string, RecordOptions, readonly string[]]>([
  ['a name in an answer', {}, ['', '{"api', '_key":"key-', '4711"}'].map(argumentsChunk)],
  ['a pattern in several events', patterns, ['key', '-47', '11'].map((text) => chunk({ content: text }))],
  ['a pattern in a field that no answer contains', patterns, ['key', '-47', '11'].map((x) => data({ other: { x } }))],
  ['a name after the end of the answer', {}, [chunk({ content: 'tea' }), DONE + data({ api_key: 'key-4711' })]],
  ['a pattern in a comment', patterns, [chunk({ content: 'tea' }), ': key-4711\n\n']],
])('the stream of %s is not attached', async (_, options, events) => {
  const { attached, missing } = await missingOf([...events, DONE], options);
  expect(missing).toEqual([`openai.chat.completions: ${NOT_SHOWN}`]);
  expect(attached).not.toContain('47');
});

test('a stream that only a fixture must not contain is missing there', async () => {
  const events = ['', '{"api', '_key":"key-', '4711"}'].map(argumentsChunk);
  const { attached, missing } = await missingOf([...events, DONE], { redact: redact({ keys: false }) });
  expect(attached).toContain('4711');
  expect(missing).toEqual([`openai.chat.completions: ${NOT_SHOWN}`]);
});

test('a stream that exceeds the limit of payloads, alone or with its answer, is missing', async () => {
  const events = [...words, DONE];
  const payloadBytes = events.join('').length;
  const tooLong = await missingOf(events, { limits: { payloadBytes: payloadBytes - 1 } });
  expect(tooLong.attached).not.toContain('chat.completion.chunk');
  expect(tooLong.missing).toEqual([`openai.chat.completions: ${NOT_SHOWN}`]);
  const { missing } = await missingOf(events, { limits: { payloadBytes } });
  expect(missing).toEqual(['openai.chat.completions: it is truncated; raise `limits` of `configure`']);
});

test('a stream that is not attached is missing', async () => {
  const { attached, missing } = await missingOf([...words, DONE], {}, { RUNSPAN_EXCHANGES: 'false' });
  expect(attached).toBe('');
  const reason = 'its stream is not recorded; `runspan dev` records the streams that are received with fetch';
  expect(missing).toEqual([`openai.chat.completions: ${reason}`]);
});
