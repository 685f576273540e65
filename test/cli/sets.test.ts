import { existsSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { openReceiver } from '#src/cli/dev/dev-receiver.ts';
import { idOf, run } from '../browser/runs.ts';
import { serve } from '../http/server.ts';
import { start } from '../receiver/wire.ts';
import { runMain } from '../support/command.ts';
import { testFolder } from '../support/test-folder.ts';

const OF_LIBRARY = { ls_model_name: 'm', otel: {}, sampling: 'failed', sample_rate: 0.5, 'http.route': '/' };
const INPUTS = { question: 'Why?', api_key: 'kept-out', id: 'DIGITS' };
const METADATA = { plan: 'pro', thread_id: 't', ...OF_LIBRARY };
const RUNS = [
  run(1, { ms: 5, name: 'agent', inputs: INPUTS, outputs: { answer: 'So.' }, extra: { metadata: METADATA } }),
  run(2, { parent: 1, ms: 2, name: 'call', run_type: 'llm', inputs: { q: 1 }, outputs: { a: 2 } }),
  run(3, { ms: 9, name: 'wrap' }),
  run(4, { parent: 3, ms: 5, name: 'inner', inputs: { question: 'Who?' }, outputs: { answer: 'You.' } }),
  run(5, { name: 'open' }),
];
const FEEDBACK: [run: number, key: string, fields: object, modified?: string][] = [
  [1, 'liked', { correction: { answer: 'Because.' }, comment: 'no note' }, '2026-11-20T08:00:00.5Z'],
  [1, 'liked', { correction: { answer: 'Old.' } }, '2026-11-20T08:00:00Z'],
  [1, 'note', { comment: 'wrong price' }],
  [1, 'note', { comment: 'see the invoice' }],
  [2, 'fixed', { correction: 'three' }],
  [4, 'note', { comment: 'who asks?' }],
];

const AGENT = `{"inputs":{"question":"Why?","api_key":"[Redacted]","id":12345678901234567890},"outputs":{"answer":"Because."},"metadata":{"plan":"pro","thread_id":"t","note":"wrong price\\nsee the invoice"},"source_run_id":"${idOf(1)}"}\n`;
const CALL = `{"inputs":{"q":1},"outputs":{"outputs":"three"},"source_run_id":"${idOf(2)}"}\n`;
const WRAP = `{"inputs":{"question":"Who?"},"outputs":{"answer":"You."},"metadata":{"note":"who asks?"},"source_run_id":"${idOf(3)}"}\n`;
const OPEN = `{"inputs":{},"source_run_id":"${idOf(5)}"}\n`;

async function request(url: string, body?: string) {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(url, body === undefined ? {} : { method: 'POST', headers, body });
  return { status: response.status, body: await response.json() };
}

/** Starts the receiver of `runspan dev` with the runs, in a folder with these files. */
async function project(files: Record<string, string> = {}) {
  const folder = testFolder(files);
  vi.spyOn(process, 'cwd').mockReturnValue(folder);
  const receiver = await openReceiver({ port: 0 }, { storePath: undefined, hasProgram: false, warn: () => {} });
  onTestFinished(() => receiver.stop());
  const runs = RUNS.map(({ id, fields }) => ({ id, ...fields }));
  const feedback = FEEDBACK.map(([at, key, fields, modified_at]) => ({
    run_id: idOf(at),
    key,
    ...fields,
    modified_at,
  }));
  const json = JSON.stringify({ format: 'runspan-trace', version: 1, runs, feedback });
  const imported = await request(`${receiver.url}/query/import`, json.replace('"DIGITS"', '12345678901234567890'));
  expect(imported.status).toBe(200);
  return {
    folder,
    read: (name: string) => readFileSync(join(folder, 'runspan-sets', `${name}.jsonl`), 'utf8'),
    list: () => request(`${receiver.url}/query/sets`),
    post: (name: string, body: unknown) => request(`${receiver.url}/query/sets/${name}`, JSON.stringify(body)),
    add: (...args: string[]) => runMain(['set', 'add', ...args, '--url', receiver.url]),
  };
}

it('an example has the inputs of its run, the latest correction, the notes and the metadata of the application', async () => {
  const { add, read } = await project();
  const stdout = '3 added, 0 kept: runspan-sets/all.jsonl\n';
  expect(await add('all', 'project:shop')).toEqual({ code: 0, stdout, stderr: '' });
  // The root of the second trace has neither inputs nor outputs, and that of the third has not ended.
  expect(read('all')).toBe(AGENT + WRAP + OPEN);
});

it('the command adds runs with --runs, and the page adds traces and runs by their ids, each once', async () => {
  const { add, post, read, list } = await project();
  expect((await add('calls', '--runs', 'type:llm')).stdout).toBe('1 added, 0 kept: runspan-sets/calls.jsonl\n');
  const body = { trace_ids: [idOf(3), idOf(3)], run_ids: [idOf(2), idOf(3)] };
  const file = 'runspan-sets/calls.jsonl';
  expect(await post('calls', body)).toEqual({ status: 200, body: { added: 1, kept: 1, file } });
  await Promise.all([1, 2, 3].map(() => post('calls', { trace_ids: [idOf(1)] })));
  expect(read('calls')).toBe(CALL + WRAP + AGENT);
  expect(await list()).toEqual({ status: 200, body: { items: [{ name: 'calls', examples: 3 }] } });
});

it('a line that a person has edited stays as it is, also without a line break at its end', async () => {
  const edited = `\ufeff{ "inputs": {}, "source_run_id": "${idOf(1)}" }\r\n\n{"inputs":{"by":"hand"}}`;
  const { add, read, list } = await project({ 'runspan-sets/a.jsonl': edited });
  expect((await add('a', 'name:agent,wrap')).stdout).toBe('1 added, 1 kept: runspan-sets/a.jsonl\n');
  expect((await add('a', 'name:agent,wrap')).stdout).toBe('0 added, 2 kept: runspan-sets/a.jsonl\n');
  expect(read('a')).toBe(`${edited}\n${WRAP}`);
  expect((await list()).body).toEqual({ items: [{ name: 'a', examples: 3 }] });
});

it.each([['oops'], ['[1]'], ['{"inputs":{}} {}']])('a file with the line %s is not changed', async (line) => {
  const text = `{"inputs":{}}\n\n${line}\n`;
  const { add, post, read } = await project({ 'runspan-sets/a.jsonl': text });
  const problem = 'runspan-sets/a.jsonl:3 is no JSON object';
  expect(await add('a', 'name:agent')).toEqual({ code: 1, stdout: '', stderr: `runspan: ${problem}\n` });
  expect(await post('a', { run_ids: [idOf(1)] })).toEqual({ status: 422, body: { detail: problem } });
  expect(read('a')).toBe(text);
});

it.each(['..', '.hidden', 'a..b', 'a/b', '../../a', 'a\\b', 'a\0', 'ä', '', 'x'.repeat(65)])(
  '%j is no name of a set',
  async (name) => {
    const { add, post, folder } = await project();
    expect((await add(name, 'name:agent')).code).toBe(2);
    expect((await post(encodeURIComponent(name), { run_ids: [idOf(1)] })).status).toBeOneOf([404, 422]);
    expect(readdirSync(folder)).toEqual([]);
  },
);

it('symbolic links are not followed', async () => {
  const outside = testFolder({ 'a.jsonl': '{}\n' });
  const { add, folder, list } = await project();
  const sets = join(folder, 'runspan-sets');
  symlinkSync(outside, sets);
  expect((await add('b', 'name:agent')).stderr).toBe('runspan: runspan-sets is a symbolic link\n');
  expect((await list()).body).toEqual({ items: [] });
  const other = await project({ 'runspan-sets/x.jsonl': '' });
  symlinkSync(join(outside, 'a.jsonl'), join(other.folder, 'runspan-sets/a.jsonl'));
  expect((await other.add('a', 'name:agent')).code).toBe(1);
  expect((await other.post('a', { run_ids: [idOf(1)] })).status).toBe(422);
  expect((await other.list()).body).toEqual({ items: [{ name: 'x', examples: 0 }] });
  expect([readdirSync(outside), readFileSync(join(outside, 'a.jsonl'), 'utf8')]).toEqual([['a.jsonl'], '{}\n']);
});

it('a request with an unknown id, or not 1 to 1,000 ids, writes nothing', async () => {
  const { post, folder } = await project();
  const body = { detail: `The trace ${idOf(9)} is not stored` };
  expect(await post('a', { run_ids: [idOf(1)], trace_ids: [idOf(9)] })).toEqual({ status: 422, body });
  expect((await post('a', { run_ids: [idOf(9)] })).body).toEqual({ detail: `run ${idOf(9)} is not stored` });
  const ids = Array.from({ length: 1_000 }, () => idOf(1));
  expect((await post('a', { run_ids: ids, trace_ids: [idOf(1)] })).status).toBe(422);
  expect((await post('a', {})).body).toEqual({ detail: 'Expected 1 to 1000 ids, got 0' });
  expect(readdirSync(folder)).toEqual([]);
  expect((await post('a', { run_ids: ids })).body).toMatchObject({ added: 1, kept: 0 });
});

it('the command fails if nothing matches, or more than it adds at once', async () => {
  const { add, folder } = await project();
  expect(await add('a', 'name:none')).toEqual({ code: 1, stdout: '', stderr: 'runspan: nothing matches\n' });
  const { url } = await serve((_, response) => response.end('{"items":[{}],"next":"x"}'));
  const stderr = 'runspan: more than 1,000 match; narrow the filter\n';
  expect(await runMain(['set', 'add', 'a', 'x', '--url', url])).toEqual({ code: 1, stdout: '', stderr });
  expect(existsSync(join(folder, 'runspan-sets'))).toBe(false);
});

it('other receivers have no sets', async () => {
  const { url } = await start();
  expect((await request(`${url}/query/sets`)).status).toBe(404);
  expect((await request(`${url}/query/sets/a`, `{"run_ids":["${idOf(1)}"]}`)).status).toBe(404);
});
