import { once } from 'node:events';
import { Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import fc from 'fast-check';
import { request } from 'undici';
import { expect, test } from 'vitest';
import { ExportReader } from '#src/receiver/api/export/export-reader.ts';
import type { Receiver } from '#src/receiver.ts';
import { forAll } from '../support/campaign.ts';
import { CHILD, END, makeChild, makeRun, part, ROOT, START, sendJson, sendParts, start } from './wire.ts';

test('an export is divided into the same entries however it is cut into chunks', () => {
  const json = fc.record({
    format: fc.string(),
    version: fc.nat(),
    other: fc.jsonValue().filter((value) => !Array.isArray(value)),
    feedback: fc.array(fc.jsonValue()),
    runs: fc.array(fc.jsonValue()),
  });
  forAll(100, [json, fc.array(fc.nat(200), { maxLength: 20 }), fc.constantFrom(0, 1)], (value, cuts, indent) => {
    const bytes = Buffer.from(JSON.stringify(value, undefined, indent));
    const reader = new ExportReader();
    const read: Record<string, unknown> = {};
    for (const list of ['feedback', 'runs']) read[list] = [];
    const places = [0, ...cuts.map((cut) => Math.min(cut, bytes.length)).sort((a, b) => a - b), bytes.length];
    for (const [at, place] of places.slice(1).entries()) {
      for (const { key, bytes: part, index } of reader.write(bytes.subarray(places[at], place))) {
        const parsed: unknown = JSON.parse(part.toString());
        if (index === undefined) read[key] = parsed;
        else (read[key] as unknown[])[index] = parsed;
      }
    }
    reader.end();
    expect(read).toEqual(JSON.parse(bytes.toString()));
  });
});

const MB = 1_000_000;

/** An export of runs with `length` characters of payload each. */
function* exportOf(runs: number, length = 0): Generator<string> {
  yield '{"format":"runspan-trace","version":1,"feedback":[],"runs":[';
  for (let index = 0; index < runs; index += 1) {
    const id = `0193b3a0-0000-7000-8000-${String(index).padStart(12, '0')}`;
    const own = { id, trace_id: id, dotted_order: `20261120T072240123456Z${id}` };
    yield (index === 0 ? '' : ',') + JSON.stringify(makeRun({ ...own, inputs: { text: 'x'.repeat(length) } }));
  }
  yield ']}';
}

test.each([false, true])(
  'an export larger than the limit of a body is imported, compressed: %s',
  async (isCompressed) => {
    const receiver = await start();
    const [head = '', ...runs] = exportOf(1);
    const ignored = `"ignored":"${'x'.repeat(MB)}",`;
    // A body has at most 64 MiB.
    const body = Readable.from([head.slice(0, 1), ...Array(68).fill(ignored), head.slice(1), ...runs]);
    const headers = { 'content-type': 'application/json', ...(isCompressed ? { 'content-encoding': 'gzip' } : {}) };
    const answer = await request(`${receiver.url}/query/import`, {
      method: 'POST',
      headers,
      body: isCompressed ? body.pipe(createGzip({ level: 1 })) : body,
    });
    expect([answer.statusCode, await answer.body.json()]).toEqual([200, { traces: 1, runs: 1 }]);
    expect(await receiver.runs()).toHaveLength(1);
  },
);

const send = async (body: string, headers: Record<string, string> = {}) => {
  const receiver = await start();
  const options = { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body } as const;
  const answer = await request(`${receiver.url}/query/import`, options);
  return [answer.statusCode, await answer.body.json(), (await receiver.runs()).length];
};

const EMPTY = '{"format":"runspan-trace","version":1,"runs":[]}';

test.each([
  `${EMPTY} garbage`,
  `${EMPTY}}`,
  `${EMPTY}${EMPTY}`,
  `${EMPTY},`,
  `x${EMPTY}`,
  ...[
    ...[']]}', '}]', '}}', ']],', '],}', '] 1}', '][1]}', '],"other":[1,]}', '],"other":[,1]}', '],"other":[1}]}'],
    ...['] "other":1}', '],"other":1:2}', '],"other":}', '],"other"}', '],1:2}', '],"other":1 [2]}'],
  ].map((end) => EMPTY.replace(']}', end)),
])('%s is rejected, because it is not valid JSON', async (body) => {
  expect(() => JSON.parse(body)).toThrow();
  expect(await send(body)).toEqual([400, { detail: expect.any(String) }, 0]);
});

test.each([
  ['"format":"other","version":1', 'its `format` is not "runspan-trace"'],
  ['"format":"runspan-trace","version":2', 'Expected `version` of the export to be 1, got the number 2'],
])('nothing of a large export with the header %s is stored', async (header, message) => {
  // The receiver stores 5,000 runs at once.
  const body = [...exportOf(5_001)].join('').replace('"format":"runspan-trace","version":1', header);
  expect(await send(body)).toEqual([400, { detail: expect.stringContaining(message) }, 0]);
});

test('the number of values before a colon is limited', async () => {
  const body = `{[${'[],'.repeat(1_000_001)}[]]:1}`;
  expect(await send(body)).toEqual([413, { detail: expect.stringContaining('2000000 values') }, 0]);
});

test('white space of any length may surround the values of an export', async () => {
  const space = ' '.repeat(100);
  const body = [...exportOf(1)].join('').replaceAll(/[{}[\]]/g, `${space}$&\n${space}`);
  expect(await send(`${body}\r\n\t`)).toEqual([200, { traces: 1, runs: 1 }, 1]);
});

test('an export that is not complete, or not compressed as announced, is rejected', async () => {
  const whole = [...exportOf(1)].join('');
  const cut = { detail: 'The file is not a trace exported by runspan: the file is incomplete' };
  expect(await send(whole.slice(0, -2))).toEqual([400, cut, 0]);
  const invalid = { detail: expect.stringContaining('not valid gzip') };
  expect(await send(whole, { 'content-encoding': 'gzip' })).toEqual([400, invalid, 0]);
  expect(await send(whole, { 'content-type': 'text/plain' })).toMatchObject([415, {}, 0]);
});

test('the runs that match a filter are exported as JSON lines, and a second import of them changes nothing', async () => {
  const [from, to] = [await start(), await start()];
  await sendParts(
    from,
    part(`post.${ROOT}`, makeRun()),
    part(`post.${ROOT}.inputs`, Buffer.from('{\n "question": "Why?\\n"\n}')),
    part(`post.${CHILD}`, makeChild({ end_time: END })),
    part(`attachment.${CHILD}.a`, Buffer.from([0, 255]), ['Content-Type: text/plain', 'Content-Length: 2']),
  );
  await sendJson(from, 'POST', '/query/feedback', { run_id: CHILD, key: 'liked', score: 1 });
  const exported = async ({ url }: Receiver, search = '') => {
    const { statusCode, headers, body } = await request(`${url}/query/export${search}`);
    expect([statusCode, headers['content-type']]).toEqual([200, 'application/jsonl']);
    return body.text();
  };
  const text = await exported(from);
  const runs = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(runs.map(({ id }) => id)).toEqual([ROOT, CHILD]);
  expect(runs[1].feedback).toMatchObject([{ run_id: CHILD, key: 'liked', score: 1 }]);
  expect(await exported(from, '?filter=type:llm')).toBe(`${text.split('\n')[1]}\n`);
  expect(await exported(from, '?filter=name:none')).toBe('');

  const headers = { 'content-type': 'application/x-ndjson' };
  const body = `\r\n${text.trimEnd().replaceAll('\n', '\r\n')}`;
  for (const time of ['first', 'second']) {
    const { statusCode, body: result } = await request(`${to.url}/query/import`, { method: 'POST', headers, body });
    expect([time, statusCode, await result.json()]).toEqual([time, 200, { traces: 1, runs: 2 }]);
    expect(await exported(to)).toBe(text);
  }
  const invalid = await request(`${to.url}/query/import`, { method: 'POST', headers, body: `${text}{"id": 7}` });
  expect(invalid.statusCode).toBe(422);
});

test('imported runs whose parent had not arrived join the trace of the parent', async () => {
  const [from, to] = [await start(), await start()];
  const simple = (id: string, parent_run_id?: string) => ({
    ...{ id, name: 'run', run_type: 'chain', inputs: {}, start_time: START, session_name: 'default' },
    ...(parent_run_id && { parent_run_id }),
  });
  const leaf = CHILD.replace('2222', '3333');
  for (const run of [simple(leaf, CHILD), simple(CHILD, ROOT)]) await sendJson(from, 'POST', '/runs', run);
  const { body } = await request(`${from.url}/query/traces/${CHILD}/export`);
  await sendJson(to, 'POST', '/query/import', (await body.json()) as object);
  await sendJson(to, 'POST', '/runs', simple(ROOT));
  expect((await to.runs()).map((run) => [run.id, run.trace_id, run.dotted_order.split('.').length])).toEqual([
    [ROOT, ROOT, 1],
    [CHILD, ROOT, 2],
    [leaf, ROOT, 3],
  ]);
});

test('closing the connection ends an import, and what was imported stays', async () => {
  const receiver = await start();
  const closed = new AbortController();
  const read: string[] = [];
  async function* halted(): AsyncGenerator<string> {
    for (const text of exportOf(22, MB)) {
      // The receiver stores 16 MiB at once.
      if (read.length === 20) await once(closed.signal, 'abort');
      read.push(text);
      yield text;
    }
  }
  const sending = request(`${receiver.url}/query/import`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: Readable.from(halted()),
    signal: closed.signal,
  });
  const failed = expect(sending).rejects.toThrow('abort');
  await expect.poll(async () => (await receiver.runs()).length).toBe(17);
  closed.abort();
  await failed;
  // Waits for the import to end.
  await receiver.close();
  expect(await receiver.runs()).toHaveLength(17);
});
