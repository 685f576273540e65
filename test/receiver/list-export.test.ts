import { request } from 'undici';
import { expect, test } from 'vitest';
import { DEFAULT_SCOPE, MemoryStore, type Store } from '#src/receiver.ts';
import { idOf, run } from '../browser/runs.ts';
import { feedback } from './conformance/support.ts';
import { openLocalStore } from './local-store.ts';
import { call, issueAt, start } from './wire.ts';

const usage_metadata = { input_tokens: 3, output_tokens: 4, total_tokens: 7, total_cost: 0.001 };
const RUNS = [
  run(1, {
    name: '=HYPERLINK("https://example.com")',
    ms: 1_500,
    tags: ['prod', 'eu'],
    inputs: { question: 'Why, "oh" why?' },
    extra: { metadata: { user_id: '+49', thread_id: 't-1' } },
  }),
  run(2, {
    parent: 1,
    name: 'model',
    run_type: 'llm',
    ms: 0.5,
    outputs: { answer: 'Because', usage_metadata },
    error: 'Error: no\n    at a.js',
    extra: { metadata: { ls_model_name: 'gpt-x' } },
  }),
  run(3, { name: 'open', session_name: 'lab' }),
];

async function exported(search: string, store: Store = new MemoryStore()): Promise<string> {
  await store.apply(DEFAULT_SCOPE, RUNS);
  await store.apply({ tenant: 'other' }, [run(8, { name: 'of another tenant', tags: ['prod'] })]);
  await store.addFeedback(DEFAULT_SCOPE, feedback(2, { run_id: idOf(2), score: 0.5 }));
  const { url } = await start({ store });
  const { statusCode, headers, body } = await request(`${url}/query/export${search}`);
  expect(statusCode).toBe(200);
  return `${headers['content-type']} ${headers['content-disposition']}\n${await body.text()}`;
}

const HEADER =
  'start_time,end_time,latency_ms,status,name,run_type,model,project,user,thread,input_tokens,output_tokens,total_tokens,total_cost,cached_tokens,cache_savings,error,tags,inputs_preview,outputs_preview,id,trace_id';

test.each([
  ['memory', async () => new MemoryStore()],
  ['SQLite', openLocalStore],
])('%s: a list of runs is exported as CSV, latest first, with quotes and without formulas', async (_, open) => {
  expect(await exported('?format=csv', await open())).toBe(
    [
      'text/csv; charset=utf-8; header=present attachment; filename="runs.csv"',
      `${HEADER}\r`,
      `2026-11-20T07:00:00.003000Z,,,pending,open,chain,,lab,,,,,,,,,,,,,${idOf(3)},${idOf(3)}\r`,
      `2026-11-20T07:00:00.002000Z,2026-11-20T07:00:00.002000Z,0,error,model,llm,gpt-x,shop,,,3,4,7,0.001,,,Error: no,,,Because,${idOf(2)},${idOf(1)}\r`,
      `2026-11-20T07:00:00.001000Z,2026-11-20T07:00:01.501000Z,1500,success,"'=HYPERLINK(""https://example.com"")",chain,,shop,'+49,t-1,,,,,,,,"prod, eu","Why, ""oh"" why?",,${idOf(1)},${idOf(1)}\r`,
      '',
    ].join('\n'),
  );
});

test('a list of traces is exported as CSV with the totals of each trace', async () => {
  const [, header, line, end] = (await exported('?format=csv&list=traces&filter=tag:prod')).split('\n');
  expect(header).toBe(`${HEADER},outcome,runs,errors,feedback\r`);
  expect(line).toMatch(/,'\+49,t-1,3,4,7,0\.001,,,Error: no,/);
  expect(line?.endsWith(`,${idOf(1)},${idOf(1)},failed_below,2,1,liked: 0.5\r`)).toBe(true);
  expect(end).toBe('');
});

test('a list of traces is exported as JSON lines with all runs of the traces', async () => {
  const [head, ...lines] = (await exported('?list=traces&filter=tag:prod')).trimEnd().split('\n');
  expect(head).toBe('application/jsonl attachment; filename="traces.jsonl"');
  expect(lines.map((line) => JSON.parse(line).id)).toEqual([idOf(1), idOf(2)]);
});

test.each([
  ['runs', 750, 750],
  ['traces', 251, 251],
  ['traces', 250, 250],
])('%s: a limit of %i rows is kept over several pages', async (list, limit, rows) => {
  const store = new MemoryStore({ runsMax: 10_000 });
  const stored = Array.from({ length: 1_000 }, (_, index) => run(index + 1, { at: index, ms: 5 }));
  await store.apply(DEFAULT_SCOPE, stored);
  const { url } = await start({ store });
  const { body } = await request(`${url}/query/export?format=csv&list=${list}&limit=${limit}`);
  const ids = (await body.text()).split('\r\n').map((line) => line.split(',')[20]);
  expect(new Set(ids.slice(1, -1)).size).toBe(rows);
  expect(ids[1]).toBe(idOf(1_000));
});

test.each(['runs', 'traces'])(
  'a list of %s exports a trace of 4,000 runs with attachments from memory before the test ends',
  async (list) => {
    const store = new MemoryStore();
    const attachments = [{ name: 'a', bytes: new Uint8Array(1), mimeType: 'x/y' }];
    const runs = Array.from({ length: 4_000 }, (_, at) => ({
      ...run(at + 1, at > 0 ? { parent: 1 } : {}),
      attachments,
    }));
    await store.apply(DEFAULT_SCOPE, runs);
    const { url } = await start({ store });
    const { body } = await request(`${url}/query/export?list=${list}`);
    const lines = (await body.text()).trimEnd().split('\n');
    expect(lines).toHaveLength(4_000);
    expect(JSON.parse(lines[0] ?? '').attachments).toEqual([{ name: 'a', mime_type: 'x/y', data: 'AA==' }]);
  },
);

test('an unknown format or list is refused', async () => {
  const { url } = await start();
  expect(await call(`${url}/query/export?format=xml`, 'GET')).toMatchObject(issueAt('query', 'format'));
  expect(await call(`${url}/query/export?list=all`, 'GET')).toMatchObject(issueAt('query', 'list'));
});
