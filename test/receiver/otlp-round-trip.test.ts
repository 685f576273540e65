// Runs that runspan sends as spans become the same runs again.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createExporter, runIdFrom, startRun } from '#src/index.ts';
import type { Receiver } from '#src/receiver.ts';
import { PROGRAM_ENDED } from '#src/run/record.ts';
import type { Run } from '#src/run/run.ts';
import { cases } from '../support/campaign.ts';
import { makeRun, makeSpan, multipart, part, requestOf, sendJson, sendMultipart, sendSpans, start } from './wire.ts';

type Fields = Record<string, unknown>;

async function exported(receiver: Receiver, format: string): Promise<string[]> {
  const response = await fetch(`${receiver.url}/query/export?format=${format}`);
  expect(response.status).toBe(200);
  return (await response.text()).split('\n').filter((line) => line !== '');
}

async function runsOf(receiver: Receiver): Promise<Map<unknown, Fields>> {
  const runs = (await exported(receiver, 'jsonl')).map((line): Fields => JSON.parse(line));
  return new Map(runs.map((run) => [run.id, run]));
}

const text = fc.string({ unit: 'grapheme', maxLength: 12 });
const filled = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }).filter((value) => value.trim() !== '');
const json = fc.jsonValue({ maxDepth: 3, stringUnit: 'grapheme' });
const object = fc.dictionary(text, json, { maxKeys: 4 });
const micros = fc.integer({ min: 0, max: 999_999 }).map((us) => String(us).padStart(6, '0'));
const time = micros.map((us) => `2026-11-20T07:22:40.${us}Z`);
const message = fc.record({
  role: fc.constantFrom('system', 'user', 'assistant', 'tool'),
  content: fc.oneof(
    text,
    fc.array(fc.record({ type: fc.constantFrom('text', 'image_url', 'x'), text }), { maxLength: 2 }),
  ),
});
const usage = fc.record({ input_tokens: fc.nat(), output_tokens: fc.nat(), total_tokens: fc.nat() });
const metadata = fc.oneof(
  object,
  fc.record({
    ls_provider: text,
    ls_model_name: json,
    ls_temperature: fc.double(),
    thread_id: text,
    finish_reasons: json,
  }),
  fc.record({ 'input.value': json, 'tag.tags': json, 'runspan.dotted_order': text, metadata: json }),
  fc.record({ ls_invocation_params: json, usage_metadata: json, ls_agent_type: text, 'gen_ai.request.model': json }),
);
const event = fc.record(
  { name: fc.oneof(filled, fc.constant('gen_ai.evaluation.result')), time, kwargs: object },
  { requiredKeys: ['name', 'time'] },
);

const REASONS = ['cancelled', 'interrupted', 'incomplete'] as const;
const record = fc
  .record(
    {
      name: filled,
      run_type: fc.oneof(fc.constantFrom('chain', 'llm', 'tool', 'retriever', 'embedding', 'prompt', 'parser'), filled),
      start: micros,
      end_time: micros.map((us) => `2026-11-20T07:22:41.${us}Z`),
      inputs: fc.oneof(object, fc.record({ messages: fc.array(message, { maxLength: 3 }) })),
      // Empty payloads are not sent.
      outputs: fc.oneof(
        object.filter((value) => Object.keys(value).length > 0),
        fc.record({ role: text, content: text, usage_metadata: usage }),
      ),
      // An empty error is that of a run that was interrupted before.
      error: fc.oneof(filled, fc.constantFrom('', 'TypeError: boom\n    at a (b.ts:1:2)')),
      events: fc.array(event, { minLength: 1, maxLength: 3 }),
      tags: fc.array(text, { minLength: 1, maxLength: 3 }),
      reference_example_id: fc.uuid({ version: 4 }),
      extra: fc.record(
        { metadata, runtime: object, invocation_params: json, runspan_end_reason: fc.constantFrom(...REASONS) },
        { requiredKeys: ['metadata'] },
      ),
      project: fc.oneof(
        filled.map((session_name) => ({ session_name })),
        fc.uuid({ version: 4 }).map((session_id) => ({ session_id })),
      ),
    },
    { requiredKeys: ['name', 'run_type', 'start', 'inputs', 'project'] },
  )
  .map(({ start: us, inputs, outputs, events, project, ...rest }) => ({
    us,
    payloads: { inputs, outputs, events },
    main: { ...rest, ...project },
  }));

const RUNS = 300;

test('a run of any kind is the same run after an export as spans', async () => {
  const [first, second] = [await start(), await start()];
  const parts = fc.sample(fc.tuple(record, fc.boolean()), RUNS).flatMap(([{ us, payloads, main }, isNested], at) => {
    const root = runIdFrom(`root ${at}`);
    const id = isNested ? runIdFrom(`child ${at}`) : root;
    const own = `20261120T072240${us}Z${id}`;
    const fields = makeRun({
      ...main,
      id,
      trace_id: root,
      dotted_order: isNested ? `20261120T072240000000Z${root}.${own}` : own,
      start_time: `2026-11-20T07:22:40.${us}Z`,
      ...(isNested && { parent_run_id: root }),
      session_name: undefined,
      ...main,
    });
    const given = Object.entries(payloads).filter(([, value]) => value !== undefined);
    return [part(`post.${id}`, fields), ...given.map(([name, value]) => part(`post.${id}.${name}`, value))];
  });
  expect((await sendMultipart(first, multipart(...parts))).status).toBe(202);
  const [rated = ''] = [...(await runsOf(first)).keys()];
  const rating = { run_id: rated, key: 'liked', score: true, comment: 'ü', correction: { a: 1 }, metadata: { b: 2 } };
  expect((await sendJson(first, 'POST', '/feedback', rating)).status).toBe(200);
  const lines = await exported(first, 'otlp');
  expect(lines.length).toBeGreaterThan(1);
  for (const line of lines) expect((await sendJson(second, 'POST', '/v1/traces', line)).body).toEqual({});
  const [before, after] = [await runsOf(first), await runsOf(second)];
  expect(before.size).toBe(RUNS);
  for (const [id, run] of before) expect(after.get(id)).toEqual(run);
});

/** Records runs of each kind. The same call records the same runs. */
function recordRuns(exporter: ReturnType<typeof createExporter>, key: string): void {
  const startMs = Date.UTC(2026, 10, 20);
  const child = (parent: Run, name: string, options: object): Run =>
    parent.child({ name, id: runIdFrom(`${key} ${name}`), startTime: startMs + 1, ...options });
  const root = startRun({
    name: 'agent ü',
    exporter,
    root: true,
    id: runIdFrom(`${key} agent`),
    startTime: startMs,
    inputs: { q: 'hello' },
    tags: ['a', 'b'],
    metadata: { tier: 'gold', list: [1, null], nested: { a: 1 }, none: null, threadId: 't' },
  });
  const usage = { input_tokens: 10, output_tokens: 5, total_tokens: 15, input_token_details: { cache_read: 4 } };
  const model = child(root, 'model', {
    runType: 'llm',
    inputs: { messages: [{ role: 'user', content: 'hello' }], model: 'gpt-5' },
    metadata: {
      ls_provider: 'openai',
      ls_model_name: 'gpt-5',
      ls_invocation_params: { temperature: 0.1, tools: [{}] },
    },
  });
  model.event('new_token', { token: 'h', deep: [{}] });
  model.end({ role: 'assistant', content: 'hi', tool_calls: [], usage_metadata: usage });
  child(root, 'search', { runType: 'tool', inputs: { q: 1 } }).fail(
    Object.assign(new TypeError('boom'), { stack: 'TypeError: boom\n    at a (b.ts:1:2)' }),
  );
  child(root, 'documents', { runType: 'retriever', inputs: { query: 'x' } }).end({
    documents: [{ page_content: 'text', metadata: { source: 'a' } }],
  });
  child(root, 'vectors', { runType: 'embedding', inputs: { texts: ['x'] } }).end({
    usage_metadata: { input_tokens: 3 },
  });
  root.end({ answer: 'x'.repeat(20_000) });
}

test.each(['otlp', 'otlp-json'] as const)(
  'runs that an exporter sends with %s are those that it sends to a service',
  async (protocol) => {
    const [runs, spans] = [await start(), await start()];
    for (const [receiver, options] of [
      [runs, {}],
      [spans, { protocol }],
    ] as const) {
      const exporter = createExporter({ endpoint: receiver.url, project: 'shop', ...options });
      recordRuns(exporter, protocol);
      expect(await exporter.close()).toEqual({ ok: true, pending: 0 });
      expect(exporter.stats()).toMatchObject({ sent: 5, dropped: 0 });
    }
    const withoutEnds = (all: Map<unknown, Fields>): Fields[] =>
      [...all.values()].map(({ end_time, events, ...run }) => ({
        ...run,
        ended: end_time !== undefined,
        events: (events as Fields[] | undefined)?.map(({ time: _, ...rest }) => rest),
      }));
    const [before, after] = [await runsOf(runs), await runsOf(spans)];
    expect(before.size).toBe(5);
    expect(new Set(withoutEnds(after).map((run) => JSON.stringify(run)))).toEqual(
      new Set(withoutEnds(before).map((run) => JSON.stringify(run))),
    );
  },
);

const OWN_KEYS = fc.constantFrom('end_reason', 'runspan_end_reason', 'runspan.end_reason', 'runspan.incomplete');
const METADATA = fc.dictionary(OWN_KEYS, fc.constantFrom(...REASONS));
const ERROR = fc.oneof(filled, fc.constantFrom('Incomplete: no JSON', 'Interrupted: no', PROGRAM_ENDED, 'cancelled'));

test('a run that has failed has the status error, whatever its error and its metadata say', async () => {
  const receiver = await start();
  const exporter = createExporter({ endpoint: receiver.url });
  const sent = fc.sample(fc.tuple(ERROR, METADATA), cases(100)).map(([error, metadata], at) => {
    startRun({ name: 'option', exporter, metadata }).fail(error);
    const run = startRun({ name: 'set', exporter });
    run.set({ metadata });
    run.fail(error);
    const { dotted_order: _, trace_id: __, ...post } = makeRun({ id: runIdFrom(`${at}`), error, extra: { metadata } });
    const attributes = Object.entries(metadata).map(([key, stringValue]) => ({ key, value: { stringValue } }));
    const ids = { traceId: `${at + 1}`.padStart(32, '0'), spanId: `${at + 1}`.padStart(16, '0') };
    return { post, span: makeSpan({ ...ids, attributes, status: { code: 2, message: error } }) };
  });
  await exporter.close();
  await sendJson(receiver, 'POST', '/runs/batch', { post: sent.map(({ post }) => post) });
  await sendSpans(receiver, requestOf(sent.map(({ span }) => span)));
  expect(await receiver.runs({ filter: 'status:error', limit: 1_000 })).toHaveLength(4 * sent.length);
});

test.each(['multipart', 'simple', 'otlp', 'otlp-json'])(
  'how a run has ended is stored if it is sent with %s, and after an import',
  async (route) => {
    const [receiver, copy] = [await start(), await start()];
    const exporter = createExporter({
      endpoint: receiver.url,
      ...(route.startsWith('otlp') && { protocol: route as 'otlp' }),
      fetch: async (url, init) =>
        route === 'simple' && /multipart$/.test(`${url}`) ? new Response('', { status: 404 }) : fetch(url, init),
    });
    startRun({ name: 'cancelled', exporter }).fail(new DOMException('gone', 'AbortError'));
    startRun({ name: 'interrupted', exporter });
    await exporter.close();
    const type = { 'content-type': 'application/jsonl' };
    await sendJson(copy, 'POST', '/query/import', (await exported(receiver, 'jsonl')).join('\n'), type);
    for (const { runs } of [receiver, copy])
      for (const name of ['cancelled', 'interrupted'])
        expect(await runs({ filter: `status:${name}` })).toMatchObject([{ name }]);
  },
);
