// Streams that a replay answers with the recorded bytes.
import OpenAI from 'openai';
import { expect, test } from 'vitest';
import { traceable } from '#src/instrument/traceable.ts';
import { wrapOpenAI } from '#src/integrations/openai/client.ts';
import { redact } from '#src/payload/redaction/redact.ts';
import { replay } from '#src/replay/run-replay.ts';
import type { RecordedRun, RecordOptions } from '#src/testing/record-runs.ts';
import type { Exchange } from '../exchanges/exchange.ts';
import { wireOf } from '../exchanges/run.ts';
import { rows } from '../exchanges/table.ts';
import { serve } from '../http/server.ts';
import { chunksOf } from '../integrations/local-openai.ts';
import { json, serveWire } from '../integrations/wire-server.ts';
import { fixtureFile, fixtureFrom, recordedProgram } from './recorded-fixture.ts';

const EVENTS = 'text/event-stream; charset=utf-8';
const model = 'small';
const prompt = 'What is tea?';
const messages = [{ role: 'user' as const, content: prompt }];
const data = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;
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

const openai = (url: string): OpenAI => new OpenAI({ apiKey: 'none', baseURL: `${url}/v1`, maxRetries: 0 });

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

const STREAMS = rows.filter(({ isStreamed }) => isStreamed);

test.each(STREAMS)('$title is replayed byte for byte, with a chunk for each event', async ({ exchange }) => {
  const { type = '', parts } = wireOf(exchange, true);
  const url = await serveWire({ type, parts: piecesOf(parts.join('')) });
  const sent = JSON.stringify({ ...exchange.body, stream: true });
  const call = (at: string) => chunksAt(at + new URL(exchange.url).pathname, undefined, sent);
  const { first, second, recorded, replayed } = await twice(url, call);
  expect([(first as string[]).join(''), recorded.length]).toEqual([[type, ...parts].join(''), 1]);
  expect(second).toEqual([type, ...parts]);
  expect(replayed).toEqual(recorded);
});

test('comments, characters of several bytes and carriage returns are replayed as they are', async () => {
  const events = [': OPENROUTER PROCESSING\n\n', chunk({ content: 'Té 🍵' }).replaceAll('\n', '\r\n'), DONE];
  const url = await serveWire({ type: EVENTS, parts: piecesOf(events.join('')) });
  const { second, recorded, replayed } = await twice(url, (at) => chunksAt(`${at}${CHAT}`));
  expect(second).toEqual([EVENTS, ...events]);
  expect(JSON.stringify(recorded)).toContain('Té 🍵');
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
  const exchange = STREAMS.find(({ exchange: { url } }) => url.includes(':generateContent'))?.exchange as Exchange;
  const [url, path] = [await serveWire(wireOf(exchange, true)), new URL(exchange.url).pathname];
  const ask = (address: string) => chunksAt(address, undefined, JSON.stringify(exchange.body));
  const recorded = await recordedProgram(() => ask(url + path.replace(':generate', ':streamGenerate')));
  const run = () => ask(NOWHERE + path);
  await expect(replay(fixtureFile(recorded), { run })).rejects.toThrow('  stream: recorded true, got nothing');
});

test('a streamed request that gets JSON gets JSON again', async () => {
  const completion = { object: 'chat.completion', choices: [{ index: 0, message: { content: '🍵' } }] };
  const { first, second } = await twice(await serveWire(json(completion)), (at) => chunksAt(`${at}${CHAT}`));
  expect(second).toEqual(first);
});

/** Records a wrapped client that reads a stream. Returns the attachments as text, and why the call cannot be replayed. */
async function missingOf(events: readonly string[], options: RecordOptions, variables?: { RUNSPAN_DEV: string }) {
  const url = await serveWire({ type: EVENTS, parts: events });
  const call = async () =>
    chunksOf(await wrapOpenAI(openai(url)).chat.completions.create({ model, messages, stream: true }));
  const runs = await recordedProgram(call, options, variables);
  const texts = runs.flatMap(({ attachments = [] }) =>
    attachments.map(({ bytes }) => Buffer.from(bytes as Uint8Array)),
  );
  return { attached: texts.join().replaceAll(url, ''), missing: fixtureFrom(runs).missing };
}

const NOT_SHOWN = 'its stream is not recorded: it contains a secret, exceeds a limit or was read with `blob()`';
const NO_STREAM = 'its stream is not recorded; `runspan dev` records the streams that are received with fetch';
const patterns = { redact: redact({ patterns: [/key-\d+/] }) };

test.each<[string, RecordOptions, readonly string[]]>([
  ['a name in an answer', {}, ['', '{"api', '_key":"key-', '4711"}'].map(argumentsChunk)],
  ['a pattern in several events', patterns, ['key', '-47', '11'].map((text) => chunk({ content: text }))],
  ['a pattern in a field that no answer contains', patterns, ['key', '-47', '11'].map((x) => data({ other: { x } }))],
  ['a name after the end of the answer', {}, [chunk({ content: 'tea' }), DONE + data({ api_key: 'key-4711' })]],
  ['a name in data of two lines', {}, ['data: {"choices":[],\ndata: "password":"hunter47"}\n\n']],
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
  const payloadCharacters = events.join('').length;
  const tooLong = await missingOf(events, { limits: { payloadCharacters: payloadCharacters - 1 } });
  expect(tooLong.attached).not.toContain('chat.completion.chunk');
  expect(tooLong.missing).toEqual([`openai.chat.completions: ${NOT_SHOWN}`]);
  const { missing } = await missingOf(events, { limits: { payloadCharacters } });
  expect(missing).toEqual(['openai.chat.completions: it is truncated; raise `limits` of `configure`']);
});

test('a stream that is not attached is missing', async () => {
  const { attached, missing } = await missingOf([...words, DONE], {}, { RUNSPAN_DEV: '{}' });
  expect(attached).toBe('');
  expect(missing).toEqual([`openai.chat.completions: ${NO_STREAM}`]);
});

test.each([
  [EVENTS, 'blob', NOT_SHOWN],
  ['text/plain', 'text', NO_STREAM],
] as const)('a stream of the type %s that is read with `%s()` is missing', async (type, method, reason) => {
  const url = await serveWire({ type, parts: [...words, DONE] });
  const runs = await recordedProgram(async () => (await fetch(`${url}${CHAT}`, { method: 'POST', body }))[method]());
  expect(fixtureFrom(runs).missing).toEqual([`openai.chat.completions: ${reason}`]);
});
