import { request } from 'undici';
import { expect, test } from 'vitest';
import { savedTrace } from '#src/receiver/api/export/saved-trace.ts';
import type { SavedData } from '#src/receiver/domain/run-view.ts';
import { DEFAULT_SCOPE, MemoryStore, type RunOperation, type Store } from '#src/receiver.ts';
import { idOf, run } from '../browser/runs.ts';
import { startReceiver } from '../support/receiver.ts';
import { openLocalStore } from './local-store.ts';
import { start } from './wire.ts';

const KEY = 'sk-proj-abcdefghijklmnopqrstuvwxyz0123456789';
const PNG = Buffer.from('89504e470d0a1a0a', 'hex');

async function filled(operations: readonly RunOperation[], store: Store = new MemoryStore()): Promise<Store> {
  await store.apply(DEFAULT_SCOPE, operations);
  return store;
}

async function saved(store: Store): Promise<string> {
  const { url } = await start({ store });
  const { statusCode, body } = await request(`${url}/query/traces/${idOf(1)}/export?format=html`);
  expect(statusCode).toBe(200);
  return body.text();
}

function dataIn(html: string): SavedData {
  return JSON.parse(/<script id="saved"[^>]*>([^<]*)<\/script>/.exec(html)?.[1] ?? '');
}

/** Returns the responses in a file by path, without the id of the runs. */
function responsesIn(html: string): Map<string, unknown> {
  const shortened = (path: string): string =>
    path.replace(/01900000-0000-7000-8000-0*([1-9a-f][0-9a-f]*)/, (_, hex) => `${Number.parseInt(hex, 16)}`);
  return new Map(dataIn(html).responses.map(([path, response]) => [shortened(path), response]));
}

test.each([
  ['memory', async () => new MemoryStore()],
  ['SQLite', () => openLocalStore()],
])('a trace in a store in %s is saved with its runs, payloads and images', async (_, open) => {
  const operations = [
    run(1, { name: 'agent', ms: 5, inputs: { question: 'Why?' }, outputs: { answer: 'So' } }),
    run(2, {
      parent: 1,
      ms: 2,
      error: 'Error: no\n    at a.js',
      events: [{ name: 'new_token', time: '2026-11-20T07:00:00.001000Z' }],
      attachments: [
        { name: 'a picture.png', mimeType: 'image/png', bytes: PNG },
        { name: 'page.svg', mimeType: 'image/svg+xml', bytes: PNG },
        { name: 'notes.txt', mimeType: 'text/plain', bytes: PNG },
      ],
    }),
    run(3, { name: 'other trace', ms: 1 }),
  ];
  const html = await saved(await filled(operations, await open()));
  expect(html.startsWith('<!doctype html>')).toBe(true);
  const responses = responsesIn(html);
  expect([...responses.keys()].sort()).toEqual([
    ...['/query/runs/1', '/query/runs/1/inputs', '/query/runs/1/outputs', '/query/runs/2'],
    ...['/query/runs/2/attachments/a%20picture.png', '/query/runs/2/events', '/query/runs/2/inputs'],
    '/query/traces/1',
  ]);
  expect(responses.get('/query/runs/1/outputs')).toEqual({ answer: 'So' });
  expect(responses.get('/query/runs/2')).toMatchObject({ error: 'Error: no\n    at a.js', status: 'error' });
  expect(responses.get('/query/runs/2/attachments/a%20picture.png')).toBe(
    `data:image/png;base64,${PNG.toString('base64')}`,
  );
  expect(responses.get('/query/traces/1')).toMatchObject({ items: [{ name: 'agent' }, { status: 'error' }] });
});

test('secrets that a client has recorded are masked wherever they are, and nothing else is', async () => {
  const cut = `${'x'.repeat(185)} ${KEY}`;
  const operations = [
    run(1, {
      name: `agent ${KEY}`,
      ms: 5,
      tags: [KEY, 'prod'],
      error: `Error: ${cut}`,
      inputs: { password: 'hunter2!', headers: [['authorization', 'Basic abcdefgh']], question: 'Why?' },
      outputs: { answer: `Use ${KEY}`, total_tokens: 7 },
      events: [{ name: 'log', time: '2026-11-20T07:00:00.001000Z', kwargs: { api_key: 'hunter2!', text: cut } }],
      extra: { metadata: { user_id: 'ada', client_secret: 'hunter2!', [KEY]: 1 } },
      attachments: [{ name: `${KEY}.png`, mimeType: 'image/png', bytes: PNG }],
    }),
  ];
  const html = await saved(await filled(operations));
  expect(html).not.toMatch(/hunter2|abcdefgh|sk-proj/);
  const responses = responsesIn(html);
  expect(responses.get('/query/runs/1/inputs')).toEqual({
    password: '[Redacted]',
    headers: [['authorization', '[Redacted]']],
    question: 'Why?',
  });
  expect(responses.get('/query/runs/1/outputs')).toEqual({ answer: 'Use [Redacted]', total_tokens: 7 });
  expect(responses.get('/query/runs/1')).toMatchObject({
    id: idOf(1),
    name: 'agent [Redacted]',
    tags: ['[Redacted]', 'prod'],
    error: `Error: ${'x'.repeat(185)} [Redacted]`,
    extra: { metadata: { user_id: 'ada', client_secret: '[Redacted]' } },
  });
  expect(responses.has(`/query/runs/1/attachments/${encodeURIComponent('[Redacted].png')}`)).toBe(true);
});

test('no text of a trace ends the script element or begins another [security 11]', async () => {
  const text = '</script><script>alert(1)</script><!--<script>\u2028\u2029 ]]> "the trace" \ud800 \u0000';
  const [before = '', after = ''] = (await saved(await filled([run(1)]))).split(/\{"id":.*\}(?=<\/script>)/s);
  const html = await saved(
    await filled([run(1, { name: text, inputs: { [text]: text }, attachments: [hostilePicture(text)] })]),
  );
  expect(html.startsWith(before) && html.endsWith(after)).toBe(true);
  expect(html.slice(before.length, -after.length)).not.toMatch(/[<\u2028\u2029]/);
  expect(responsesIn(html).get('/query/runs/1/inputs')).toEqual({ [text.toWellFormed()]: text.toWellFormed() });
});

function hostilePicture(name: string): RunOperation['attachments'][number] {
  return { name: name.toWellFormed(), mimeType: 'image/png', bytes: PNG };
}

test('what does not fit into 5,000,000 characters is left out, and smaller data after it is not', async () => {
  const payload = (length: number) => ({ text: 'x'.repeat(length - '{"text":""}'.length) });
  const lengthOf = (html: string, path: string): number => JSON.stringify(responsesIn(html).get(path) ?? '').length;
  const trace = (length: number) =>
    filled([
      run(1, { ms: 5, inputs: payload(4_000_000), outputs: payload(length) }),
      run(2, { parent: 1, ms: 2, inputs: payload(1_000) }),
    ]);
  const small = await saved(await trace(1_000));
  // The pairs before the outputs take more than their payloads.
  const rest = 5_000_000 - 4_000_000 - lengthOf(small, '/query/runs/1') - 'pairs of a path'.length;
  const near = responsesIn(await saved(await trace(rest - 1_000)));
  expect([near.has('/query/runs/1/outputs'), near.has('/query/runs/2/inputs')]).toEqual([true, false]);
  const beyond = responsesIn(await saved(await trace(rest + 1_000)));
  expect([beyond.has('/query/runs/1/outputs'), beyond.has('/query/runs/2/inputs')]).toEqual([false, true]);
});

test('the file has the first 2,000 runs, and the number of the others', async () => {
  for (const [count, omitted] of [
    [2_000, 0],
    [2_001, 1],
  ] as const) {
    const operations = [run(1), ...Array.from({ length: count - 1 }, (_, index) => run(index + 2, { parent: 1 }))];
    const pieces = await savedTrace({ store: await filled(operations), scope: DEFAULT_SCOPE }, idOf(1), 0);
    let html = '';
    for await (const piece of pieces ?? []) html += piece;
    const { items } = responsesIn(html).get('/query/traces/1') as { items: unknown[] };
    expect([items.length, dataIn(html).omittedRuns]).toEqual([2_000, omitted]);
  }
});

test('the file is a download that runs nothing in the origin of the receiver', async () => {
  const { url } = await start({ store: await filled([run(1)]) });
  const { headers } = await request(`${url}/query/traces/${idOf(1)}/export?format=html`);
  expect(headers).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'content-disposition': `attachment; filename="trace-${idOf(1)}.html"`,
    'content-security-policy': "sandbox; default-src 'none'",
    'x-content-type-options': 'nosniff',
  });
});

test('only who may read a trace can save it', async () => {
  const store = await filled([run(1)]);
  await store.apply({ tenant: 'other' }, [run(2)]);
  const receiver = await startReceiver({ store, apiKey: 'a-key-of-some-length' });
  const answer = async (id: number, headers: Record<string, string>) => {
    const { statusCode, body } = await request(`${receiver.url}/query/traces/${idOf(id)}/export?format=html`, {
      headers,
    });
    return [statusCode, await body.text()];
  };
  expect((await answer(1, {}))[0]).toBe(401);
  const key = { 'x-api-key': 'a-key-of-some-length' };
  expect(await answer(2, key)).toEqual([404, `{"detail":"The trace ${idOf(2)} is not stored"}`]);
  expect((await answer(1, key))[0]).toBe(200);
});
