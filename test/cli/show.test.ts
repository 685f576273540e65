import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ReceiverSource, type RunSource, StoreSource } from '../../src/cli/run-source.ts';
import { showRun } from '../../src/cli/show.ts';
import { listTraces } from '../../src/cli/traces.ts';
import { MemoryStore, type RunFields, type RunOperation } from '../../src/receiver.ts';
import { start } from '../receiver/wire.ts';

const options = { widthColumns: 120, paint: (_: string, text: string) => text };
const id = (index: number) => `0193b3a0-0000-7000-8000-${String(index).repeat(12)}`;

function run(index: number, changes: RunFields & { below?: number } = {}): RunOperation {
  const { below, ...fields } = changes;
  const line = below === undefined ? [index] : [below, index];
  const whole: RunFields = {
    name: `run ${index}`,
    run_type: 'chain',
    start_time: `2026-11-20T07:00:0${index}.000000Z`,
    end_time: `2026-11-20T07:00:0${index}.012000Z`,
    trace_id: id(below ?? index),
    dotted_order: line.map((each) => `20261120T07000${each}000000Z${id(each)}`).join('.'),
    ...(below === undefined ? {} : { parent_run_id: id(below) }),
    inputs: {},
    ...fields,
  };
  return { kind: 'post', id: id(index), fields: whole, attachments: [] };
}

const OPERATIONS: RunOperation[] = [
  run(1, { inputs: { question: 'Why\u001b[2J?' }, outputs: { answer: 'x'.repeat(3_000) } }),
  run(2, { below: 1, run_type: 'llm', error: 'Error: no\n  at pay', outputs: { usage_metadata: { total_tokens: 7 } } }),
  {
    ...run(3, { tags: ['a'], extra: { metadata: { user: 'ada' } } }),
    attachments: [{ name: 'a.txt', mimeType: 'text/plain', bytes: Uint8Array.of(1) }],
  },
];

/** The same runs in a store, and behind a receiver. */
async function sources(): Promise<RunSource[]> {
  const store = new MemoryStore();
  await store.apply(OPERATIONS);
  const times = { created_at: '2026-11-20T07:00:00.000000Z', modified_at: '2026-11-20T07:00:00.000000Z' };
  for (const said of [
    { id: id(9), key: 'liked', score: 1, comment: 'good' },
    { id: id(8), key: 'user_score' },
    { id: id(7), key: 'fixed', correction: 'better' },
  ]) {
    await store.addFeedback({ run_id: id(3), ...said, ...times });
  }
  const receiver = await start({ store });
  return [new StoreSource(store, async () => {}), new ReceiverSource(new URL(receiver.url), undefined)];
}

/** What both print, which is the same. */
async function printed(print: (source: RunSource) => Promise<string>): Promise<string> {
  const [one, other] = await Promise.all((await sources()).map(print));
  expect(other).toBe(one);
  return (one ?? '').replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/g, 'TIME');
}

const list = (query = {}, isJson = false) => printed((source) => listTraces(source, { query, isJson }, options));
const show = (wanted?: string, flags = {}) =>
  printed((source) => showRun(source, { id: wanted, isFull: false, isJson: false, ...flags }, options));

describe('the list of traces', () => {
  it('has a line for each, the latest first, with what the whole comes to', async () => {
    expect(await list()).toBe(
      'TIME  333333333333  run 3 · chain · 12 ms\n' +
        'TIME  111111111111  run 1 · chain · 12 ms · 2 runs · 1 failed below · 7 tokens\n',
    );
  });

  it('says that there is more, or nothing', async () => {
    expect(await list({ limit: 1 })).toContain('\n… and more: --limit shows more of them\n');
    expect(await list({ name: 'none' })).toBe('no traces\n');
  });

  it('is JSON by the line', async () => {
    const lines = (await list({}, true)).trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line).trace_id)).toEqual([id(3), id(1)]);
  });
});

describe('one trace', () => {
  it('is a tree, with what went in and what came out, cut and unable to steer the terminal', async () => {
    const [head, ...lines] = (await show(id(1))).split('\n');
    expect(head).toBe(`trace ${id(1)}, started TIME`);
    expect(lines.slice(1, 3)).toEqual(['run 1 · chain · 12 ms', '└─ run 2 · llm · 12 ms · 7 tokens · ✗ Error: no']);
    expect(lines.join('\n')).toContain('inputs\n{\n  "question": "Why\\u001b[2J?"\n}');
    expect(lines.join('\n')).toContain('… (3018 characters; --full shows all)');
    expect(await show(id(1), { isFull: true })).toContain('x'.repeat(3_000));
  });

  it('is the latest when none is named, or the one whose id begins or ends so', async () => {
    expect(await show()).toContain(`trace ${id(3)}`);
    expect(await show('1111')).toContain(`trace ${id(1)}`);
    expect(await show(id(1).replaceAll('-', ''))).toContain(`trace ${id(1)}`);
    await expect(show('0193b3a0')).rejects.toThrow('2 of the last traces have ids that begin or end with 0193b3a0');
    await expect(show('beef')).rejects.toThrow('none of the last 1000 traces has an id that begins or ends with beef');
    await expect(show(id(8))).rejects.toThrow(`there is no trace and no run ${id(8)}`);
  });

  it('is JSON that can be imported', async () => {
    expect(JSON.parse(await show(id(1), { isJson: true }))).toMatchObject({
      format: 'runspan-trace',
      runs: [{ id: id(1) }, { id: id(2) }],
    });
  });
});

describe('one run', () => {
  it('is shown with everything that is known of it', async () => {
    expect(await show(id(2))).toBe(
      [
        'run 2',
        `run      ${id(2)}`,
        `trace    ${id(1)}`,
        `parent   ${id(1)}`,
        'type     llm',
        'status   error',
        'started  TIME (2026-11-20T07:00:02.000000Z)',
        'took     12 ms',
        'tokens   7 tokens',
        '',
        'error',
        'Error: no',
        '  at pay',
        '',
        'inputs',
        '{}',
        '',
        'outputs',
        '{',
        '  "usage_metadata": {',
        '    "total_tokens": 7',
        '  }',
        '}',
        '',
      ].join('\n'),
    );
  });

  it('is JSON with its payloads', async () => {
    expect(JSON.parse(await show(id(2), { isJson: true }))).toMatchObject({
      id: id(2),
      inputs: {},
      error: 'Error: no\n  at pay',
    });
  });

  it('has its metadata, attachments and feedback below', async () => {
    const text = await show(id(3));
    expect(text).toContain('metadata\n{\n  "user": "ada"\n}');
    expect(text).toContain('attachments\na.txt text/plain 1 bytes');
    expect(text).toContain('feedback\nliked: score 1, good\nuser_score: taken back\nfixed: correction "better"');
  });
});

describe('a receiver', () => {
  it('that is not there is told by its address', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    const source = new ReceiverSource(new URL(`http://127.0.0.1:${port}`), undefined);
    await expect(source.traces({})).rejects.toThrow(
      `no receiver answers at http://127.0.0.1:${port}: connect ECONNREFUSED`,
    );
  });

  it.each([
    [404, 'answered 404'],
    [200, 'answered what is no JSON'],
  ])('that is something else is told by its answer of %i', async (status, did) => {
    const server = createServer((_, response) => response.writeHead(status).end('<h1>A page</h1>'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const source = new ReceiverSource(new URL(`http://127.0.0.1:${port}`), undefined);
    await expect(source.traces({})).rejects.toThrow(`${did}; it may be no receiver of runspan`);
  });

  it('beyond this machine is not sent a key in the clear', () => {
    expect(() => new ReceiverSource(new URL('http://example.com'), 'k')).toThrow('neither https nor this machine');
    expect(() => new ReceiverSource(new URL('https://example.com'), 'k')).not.toThrow();
  });
});
