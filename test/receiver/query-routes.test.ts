import { randomUUID } from 'node:crypto';
import { describe, expect, test, vi } from 'vitest';
import { DEFAULT_SCOPE, type ListPage, MemoryStore, type Receiver } from '#src/receiver.ts';
import { id, post, second, simple } from './conformance/support.ts';
import { CHILD, call, END, makeChild, makeRun, part, ROOT, START, sendJson, sendParts, start } from './wire.ts';

async function filled(): Promise<Receiver> {
  const receiver = await start();
  await sendParts(
    receiver,
    part(`post.${ROOT}`, makeRun({ tags: ['prod'], extra: { metadata: { user: 'ada' } } })),
    part(`post.${ROOT}.inputs`, { question: 'Why?' }),
    part(`post.${CHILD}`, makeChild({ end_time: END })),
    part(`post.${CHILD}.outputs`, { text: 'Because.' }),
  );
  return receiver;
}

const importInto = (receiver: Receiver, body: unknown) => sendJson(receiver, 'POST', '/query/import', body);
const get = (receiver: Receiver, path: string) => call(`${receiver.url}/query/${path}`, 'GET');

describe('whoever reads a receiver gets', () => {
  test('its projects', async () => {
    const { status, body } = await get(await filled(), 'projects');
    expect([status, body]).toEqual([200, { items: [{ name: 'default', traces: 1, last_start_time: START }] }]);
  });

  test('its projects in pages, of which each goes on after the last name, whatever was stored meanwhile', async () => {
    const store = new MemoryStore();
    const receiver = await start({ store });
    const add = (...names: string[]) =>
      store.apply(
        DEFAULT_SCOPE,
        names.map((session_name) => ({ ...simple(1, { session_name }), id: randomUUID() })),
      );
    const page = async (parameters: string) => (await get(receiver, `projects?${parameters}`)).body;
    await add('b', 'd', ...Array.from({ length: 50 }, (_, at) => `e${at}`), '😀');
    expect((await page('')).items).toHaveLength(50);
    const { next, items } = await page('limit=2');
    await add('a', 'c');
    const rest = await page(`limit=51&cursor=${next}`);
    expect([items, rest.items]).toMatchObject([
      [{ name: 'b' }, { name: 'd' }],
      { 0: { name: 'e0' }, 50: { name: '😀' } },
    ]);
    expect(rest).not.toHaveProperty('next');
  });

  test('its traces, with what the whole comes to', async () => {
    const { status, body } = await get(await filled(), 'traces');
    expect(status).toBe(200);
    expect(body).toMatchObject({ items: [{ id: ROOT, inputs_preview: 'Why?', trace: { runs: 2, pending: 1 } }] });
  });

  test('its runs, by the fields of a query in snake case', async () => {
    const receiver = await filled();
    const idsOf = async (search: string) =>
      ((await get(receiver, `runs?${search}`)).body.items as { id: string }[]).map(({ id }) => id);
    expect(await idsOf('')).toEqual([CHILD, ROOT]);
    expect(await idsOf('filter=type:llm')).toEqual([CHILD]);
    expect(await idsOf('project=default&filter=tag:prod+status:pending,error')).toEqual([ROOT]);
    expect(await idsOf(`filter=since:${START}+latency<=1s&trace_id=${ROOT.replaceAll('-', '')}`)).toEqual([CHILD]);
    expect(await idsOf('filter=because&sort=latency&order=ascending&limit=1')).toEqual([CHILD]);
  });

  test('the rest of a list of a store with its own cursor format', async () => {
    const store = new MemoryStore();
    const pages: Record<string, ListPage<never>> = { '': { items: [], next: 'page 2' }, 'page 2': { items: [] } };
    store.traces = store.list = async (_scope, { cursor = '' }) => {
      const page = pages[cursor];
      if (page === undefined)
        throw Object.assign(new Error(`${cursor} is no page`), { code: 'RUNSPAN_INVALID_OPTION' });
      return page;
    };
    const receiver = await start({ store });
    for (const list of ['runs', 'traces']) {
      expect((await get(receiver, list)).body).toEqual({ items: [], next: 'page 2' });
      expect(await get(receiver, `${list}?cursor=page%202`)).toMatchObject({ status: 200, body: { items: [] } });
      expect(await get(receiver, `${list}?cursor=no`)).toMatchObject({
        status: 422,
        body: { detail: [{ loc: ['query', 'cursor'], msg: 'no is no page', type: 'value' }] },
      });
    }
  });

  test('a trace without what is in its runs, and what is said of them', async () => {
    const { status, body } = await get(await filled(), `traces/${ROOT}`);
    expect(status).toBe(200);
    expect(body).toEqual({
      items: [
        { id: ROOT, name: 'answer', run_type: 'chain', status: 'pending', start_time: START },
        {
          id: CHILD,
          parent_run_id: ROOT,
          name: 'call',
          run_type: 'llm',
          status: 'success',
          start_time: START,
          end_time: END,
        },
      ],
      feedback: [],
    });
  });

  test('a run, and its payloads one by one', async () => {
    const receiver = await filled();
    expect((await get(receiver, `runs/${ROOT}`)).body).toMatchObject({ id: ROOT, payload_sizes: { inputs: 19 } });
    expect((await get(receiver, `runs/${ROOT}/inputs`)).body).toEqual({ question: 'Why?' });
    expect((await get(receiver, `runs/${CHILD}/outputs`)).body).toEqual({ text: 'Because.' });
  });

  test('its threads, and the turns of one by pages, the first or the latest first', async () => {
    const store = new MemoryStore();
    const turns = [1, 2, 3].map((number) =>
      post(number, { ms: 100, inputs: { question: `${number}?` }, extra: { metadata: { thread_id: 'a/1 ü' } } }),
    );
    await store.apply(DEFAULT_SCOPE, [...turns, post(4)]);
    const receiver = await start({ store });
    const { body } = await get(receiver, 'threads?filter=tag:none');
    expect(body).toEqual({ items: [] });
    const summary = {
      thread: 'a/1 ü',
      project: 'shop',
      turns: 3,
      errors: 0,
      failed_below: 0,
      start_time: second(1),
      last_start_time: second(3),
      latency_ms: { p50: 100, max: 100 },
      inputs_preview: '1?',
    };
    expect((await get(receiver, 'threads?limit=10')).body).toEqual({ items: [summary] });
    const path = `threads/${encodeURIComponent('a/1 ü')}`;
    const first = await get(receiver, `${path}?limit=2`);
    expect(first.body).toMatchObject({ summary, items: [{ id: id(1) }, { id: id(2) }] });
    const last = await get(receiver, `${path}?limit=2&cursor=${first.body.next}`);
    expect(last.body).toMatchObject({ summary, items: [{ id: id(3), trace: { runs: 1 } }] });
    expect(last.body).not.toHaveProperty('next');
    const latest = await get(receiver, `${path}?limit=1&order=descending&project=shop`);
    expect(latest.body).toMatchObject({ items: [{ id: id(3) }] });
  });

  test('statistics', async () => {
    const { status, body } = await get(await filled(), 'statistics?group_by=run_type&buckets=1&groups=1');
    expect(status).toBe(200);
    expect(body).toMatchObject({
      total: { runs: 2, pending: 1, errors: 0 },
      groups: [{ group: 'chain', runs: 1 }],
      buckets: [{ start_time: START, runs: 2 }],
    });
    expect((await get(await filled(), 'statistics?group_by=meta.toString')).body.groups).toEqual([]);
  });

  test('statistics of three centuries in one bucket, with few questions about the time zone', async () => {
    const receiver = await filled();
    const format = vi.spyOn(Intl.DateTimeFormat.prototype as { format: unknown }, 'format', 'get');
    const filter = encodeURIComponent('since:1970-01-01 before:2254-01-01');
    const path = `statistics?buckets=1&time_zone=Europe/Berlin&filter=${filter}`;
    expect((await get(receiver, path)).body).toMatchObject({ total: { runs: 2 }, buckets: [{ runs: 2 }] });
    expect(format.mock.calls.length).toBeGreaterThan(0);
    expect(format.mock.calls.length).toBeLessThan(100);
  });
});

test.each<[string, number, unknown]>([
  ['traces/1', 422, [{ loc: ['path', 'id'], type: 'value' }]],
  ['runs/1/inputs', 422, [{ loc: ['path', 'id'], type: 'value' }]],
  [`traces/${CHILD}`, 404, `The trace ${CHILD} is not stored`],
  [`traces/${CHILD}/export`, 404, `The trace ${CHILD} is not stored`],
  [`traces/${ROOT}/export?format=csv`, 422, [{ loc: ['query', 'format'] }]],
  [`runs/${START}`, 422, [{ loc: ['path', 'id'], type: 'value' }]],
  [`runs/${CHILD}/inputs`, 404, `Run ${CHILD} is not stored, or has no inputs`],
  [`runs/${CHILD}/errors`, 404, `No route matches /query/runs/${CHILD}/errors`],
  ['traces?limit=0', 422, [{ loc: ['query', 'limit'], msg: expect.stringContaining('1 to 1000') }]],
  ['traces?limit=1001', 422, [{ loc: ['query', 'limit'] }]],
  ['traces?limit=', 422, [{ loc: ['query', 'limit'] }]],
  ['traces?limit=1&limit=2', 422, [{ loc: ['query', 'limit'], type: 'repeated' }]],
  ['suggestions', 422, [{ loc: ['query', 'field'], type: 'missing' }]],
  ['suggestions?field=error', 422, [{ loc: ['query', 'field'] }]],
  [
    'traces?filter=status:failed',
    422,
    [
      {
        loc: ['query', 'filter'],
        msg: expect.stringContaining('status: expects one of error, failed_below, pending'),
      },
    ],
  ],
  ['traces?sort=name', 422, [{ loc: ['query', 'sort'] }]],
  ['traces?limit=x&sort=name', 422, [{ loc: ['query', 'sort'] }, { loc: ['query', 'limit'] }]],
  ['traces?trace_id=1', 422, [{ loc: ['query', 'trace_id'], msg: 'Expected `trace_id` to be a UUID, got "1"' }]],
  ['traces?runType=llm', 422, [{ loc: ['query', 'runType'], type: 'unknown_parameter' }]],
  ['traces?__proto__=1', 422, [{ loc: ['query', '__proto__'], type: 'unknown_parameter' }]],
  ['traces?status=error', 422, [{ loc: ['query', 'status'], type: 'unknown_parameter' }]],
  ['runs?cursor=x', 422, [{ loc: ['query', 'cursor'] }]],
  [
    'statistics?rank_by=name',
    422,
    [{ loc: ['query', 'rank_by'], msg: expect.stringContaining('errors, tokens, cost') }],
  ],
  ['statistics?time_zone=Mars/Olympus', 422, [{ loc: ['query', 'time_zone'], msg: expect.stringContaining('IANA') }]],
  ['statistics?group_by=meta.', 422, [{ loc: ['query', 'group_by'], msg: expect.stringContaining('or meta.KEY') }]],
  ['statistics?buckets=501', 422, [{ loc: ['query', 'buckets'] }]],
  ['threads?sort=latency', 422, [{ loc: ['query', 'sort'], type: 'unknown_parameter' }]],
  ['threads/t', 404, 'The thread t is not stored'],
  ['threads/t?tag=a', 422, [{ loc: ['query', 'tag'], type: 'unknown_parameter' }]],
  ['threads/t?cursor=x', 422, [{ loc: ['query', 'cursor'] }]],
  ['projects?limit=1001', 422, [{ loc: ['query', 'limit'] }]],
  ['projects?sort=name', 422, [{ loc: ['query', 'sort'], msg: 'Expected one of cursor, limit' }]],
  ['projects?cursor=', 422, [{ loc: ['query', 'cursor'] }]],
  ['statistics?limit=1', 422, [{ loc: ['query', 'limit'], type: 'unknown_parameter' }]],
])('what is wrong with a question is told: %s', async (path, status, detail) => {
  const answer = await get(await filled(), path);
  expect(answer.status).toBe(status);
  expect(answer.body.detail).toEqual(
    typeof detail === 'string' ? detail : (detail as object[]).map((finding) => expect.objectContaining(finding)),
  );
});

describe('feedback given in the page', () => {
  const give = (receiver: Receiver, body: unknown) => sendJson(receiver, 'POST', '/query/feedback', body);

  test('is kept with the run that it names', async () => {
    const receiver = await filled();
    const { status, body } = await give(receiver, { run_id: CHILD, key: 'liked', score: 1 });
    expect([status, body]).toEqual([200, expect.objectContaining({ run_id: CHILD, key: 'liked', score: 1 })]);
    expect((await get(receiver, `traces/${ROOT}`)).body.feedback).toEqual([body]);
  });

  test('of a run that is not there is answered with 404, and wrong fields with 422', async () => {
    const receiver = await start({ strict: true });
    expect((await give(receiver, { run_id: CHILD, key: 'liked', score: 1 })).status).toBe(404);
    expect((await give(receiver, { run_id: 1, key: '' })).body.detail).toMatchObject([
      { loc: ['body', 'run_id'] },
      { loc: ['body', 'key'] },
    ]);
  });
});

describe('a trace leaves as a file', () => {
  test('and comes back from it the same', async () => {
    const receiver = await filled();
    await sendParts(
      receiver,
      part(`patch.${ROOT}`, makeRun({ end_time: END })),
      part(`attachment.${ROOT}.a.bin`, Buffer.of(0, 255), ['Content-Type: application/x-a']),
    );
    const said = { run_id: CHILD, key: 'liked', score: 1, comment: 'good' };
    await sendJson(receiver, 'POST', '/query/feedback', said);
    const exported = await get(receiver, `traces/${ROOT}/export`);
    expect(exported.headers['content-disposition']).toBe(`attachment; filename="trace-${ROOT}.json"`);
    const other = await start();
    const imported = await importInto(other, exported.body);
    expect([imported.status, imported.body]).toEqual([200, { traces: 1, runs: 2 }]);
    const feedback = [{ ...(exported.body.feedback as object[])[0], score: null, comment: '' }];
    expect((await importInto(other, { ...exported.body, feedback })).status).toBe(200);
    expect(await other.trace(ROOT)).toEqual(await receiver.trace(ROOT));
    expect((await get(other, `traces/${ROOT}/export`)).body).toEqual(exported.body);
  });

  test('also where a parent has not come, and runs stand at the root by orders that were made for them', async () => {
    const receiver = await start();
    const simple = { run_type: 'chain', inputs: {}, start_time: START, trace_id: ROOT };
    const [orphan, below] = ['0193b3a0-0000-7000-8000-0000000000a1', '0193b3a0-0000-7000-8000-0000000000a2'];
    await sendJson(receiver, 'POST', '/runs', { ...simple, id: orphan, name: 'orphan', parent_run_id: CHILD });
    await sendJson(receiver, 'POST', '/runs', { ...simple, id: below, name: 'below', parent_run_id: orphan });
    const before = await receiver.trace(ROOT);
    expect(before.map(({ name }) => name)).toEqual(['orphan', 'below']);
    const other = await start();
    const imported = await importInto(other, (await get(receiver, `traces/${ROOT}/export`)).body);
    expect([imported.status, imported.body]).toEqual([200, { traces: 1, runs: 2 }]);
    expect(await other.trace(ROOT)).toEqual(before);
  });

  test('and nothing of it is kept when the store refuses a run of it, however far behind that stands', async () => {
    const runs: object[] = Array.from({ length: 2_000 }, (_, at) => {
      const id = `0193b3a0-0000-7000-8000-${String(at).padStart(12, '0')}`;
      return makeRun({ id, trace_id: id, dotted_order: `20261120T072240123456Z${id}` });
    });
    const attachments = Array.from({ length: 101 }, (_, at) => ({ name: `${at}`, mime_type: 'a/b', data: '' }));
    const receiver = await start();
    const answer = await importInto(receiver, {
      format: 'runspan-trace',
      version: 1,
      runs: [...runs, makeRun({ attachments })],
    });
    expect(answer.status).toBe(413);
    expect(await receiver.runs()).toEqual([]);
  });

  const fileOf = (runs: unknown, feedback?: unknown) => ({ format: 'runspan-trace', version: 1, runs, feedback });
  const issue = (...loc: unknown[]) => expect.objectContaining({ loc: ['body', ...loc] });

  test.each<[unknown, number, unknown]>([
    [[], 400, 'The file is not a trace exported by runspan: the content is not a valid JSON object'],
    [fileOf({}), 400, 'Expected `runs` to be an array'],
    [fileOf([1]), 400, 'runs.0 is not a JSON object'],
    [fileOf([], {}), 400, 'Expected `feedback` to be an array'],
    [fileOf([], [1]), 400, 'feedback.0 is not a JSON object'],
    [fileOf([makeRun()], [{ run_id: ROOT }]), 422, [issue('feedback', 0, 'key')]],
    [fileOf([makeRun()], [{ run_id: CHILD, key: 'liked' }]), 422, [issue('feedback', 0, 'run_id')]],
    [fileOf([{ id: ROOT }]), 422, expect.arrayContaining([issue('runs', 0, 'name')])],
    [
      fileOf([makeRun({ attachments: [{ name: 'a' }] })]),
      422,
      ['mime_type', 'data'].map((field) => issue('runs', 0, 'attachments', 0, field)),
    ],
    [
      fileOf([makeRun({ attachments: [{ name: 'a', mime_type: 'a/b', data: 'AP-' }] })]),
      422,
      [issue('runs', 0, 'attachments', 0, 'data')],
    ],
  ])('but %j is none', async (body, status, detail) => {
    const receiver = await start();
    const answer = await importInto(receiver, body);
    expect([answer.status, answer.body.detail]).toEqual([status, detail]);
    expect(await receiver.runs()).toEqual([]);
  });

  test('for Perfetto as complete events', async () => {
    const { headers, body } = await get(await filled(), `traces/${ROOT}/export?format=perfetto`);
    expect(headers['content-disposition']).toContain(`trace-${ROOT}.perfetto.json`);
    expect(body.traceEvents).toContainEqual(expect.objectContaining({ ph: 'X', name: 'call', cat: 'llm' }));
  });
});
