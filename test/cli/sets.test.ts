import { readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { openReceiver } from '#src/cli/dev/dev-receiver.ts';
import { idOf, run } from '../browser/runs.ts';
import { serve } from '../http/server.ts';
import { call, sendJson } from '../receiver/wire.ts';
import { runMain } from '../support/command.ts';
import { testFolder } from '../support/test-folder.ts';

const INPUTS = { q: 'Why?', api_key: 'kept-out', id: 'DIGITS' };
const METADATA = { plan: 'pro', ls_model_name: 'm', otel: {}, sampling: 'failed', sample_rate: 0.5, 'http.route': '/' };
const RUNS = [
  run(1, { ms: 5, name: 'agent', inputs: INPUTS, outputs: { a: 'So.' }, extra: { metadata: METADATA } }),
  run(2, { parent: 1, ms: 2, name: 'call', run_type: 'llm', inputs: { q: 1 }, outputs: { a: 2 } }),
  run(3, { ms: 9, name: 'wrap' }),
  run(4, { parent: 3, ms: 5, name: 'inner', inputs: { q: 'Who?' }, outputs: { a: 'You.' } }),
  run(5, { name: 'open' }),
];
const FEEDBACK = [
  { run_id: idOf(1), key: 'x', comment: 'no note', correction: { a: 'So!' }, modified_at: '2026-11-20T08:00:00.5Z' },
  { run_id: idOf(1), key: 'x', correction: { a: 'Old.' }, modified_at: '2026-11-20T08:00:00Z' },
  { run_id: idOf(1), key: 'note', comment: 'wrong price' },
  { run_id: idOf(1), key: 'note', comment: 'see #7' },
  { run_id: idOf(2), key: 'fixed', correction: 'three' },
  { run_id: idOf(4), key: 'note', comment: 'who?' },
];

const AGENT = `{"inputs":{"q":"Why?","api_key":"[Redacted]","id":12345678901234567890},"outputs":{"a":"So!"},"metadata":{"plan":"pro","note":"wrong price\\nsee #7"},"source_run_id":"${idOf(1)}"}\n`;
const CALL = `{"inputs":{"q":1},"outputs":{"outputs":"three"},"source_run_id":"${idOf(2)}"}\n`;
const WRAP = `{"inputs":{"q":"Who?"},"outputs":{"a":"You."},"metadata":{"note":"who?"},"source_run_id":"${idOf(3)}"}\n`;

/** Starts the receiver of `runspan dev` with the runs, in a folder with these files. */
async function project(files: Record<string, string> = {}) {
  const folder = testFolder(files);
  vi.spyOn(process, 'cwd').mockReturnValue(folder);
  const receiver = await openReceiver({ port: 0 }, { storePath: undefined, hasProgram: false, warn: () => {} });
  onTestFinished(() => receiver.stop());
  const runs = RUNS.map(({ id, fields }) => ({ id, ...fields }));
  const json = JSON.stringify({ format: 'runspan-trace', version: 1, runs, feedback: FEEDBACK });
  await sendJson(receiver, 'POST', '/query/import', json.replace('"DIGITS"', '12345678901234567890'));
  return {
    folder,
    read: (name: string) => readFileSync(join(folder, 'runspan-sets', `${name}.jsonl`), 'utf8'),
    list: () => call(`${receiver.url}/query/sets`, 'GET'),
    post: (name: string, body: unknown) => sendJson(receiver, 'POST', `/query/sets/${name}`, body),
    add: (...args: string[]) => runMain(['set', 'add', ...args, '--url', receiver.url]),
  };
}

it('an example has the latest correction, the notes and the metadata of the application, and no secrets', async () => {
  const { add, read } = await project();
  expect((await add('a', 'project:shop')).stdout).toBe('3 added, 0 kept: runspan-sets/a.jsonl\n');
  // The root of the second trace has neither inputs nor outputs, and that of the third has not ended.
  expect(read('a')).toBe(`${AGENT}${WRAP}{"inputs":{},"source_run_id":"${idOf(5)}"}\n`);
});

it('the command adds runs with --runs, and the page adds traces and runs by their ids, each once', async () => {
  const { add, post, read, list } = await project();
  expect((await add('b', '--runs', 'type:llm')).stdout).toBe('1 added, 0 kept: runspan-sets/b.jsonl\n');
  const body = { added: 1, kept: 1, file: 'runspan-sets/b.jsonl' };
  expect(await post('b', { trace_ids: [idOf(3)], run_ids: [idOf(2), idOf(3)] })).toMatchObject({ status: 200, body });
  await Promise.all([1, 2, 3].map(() => post('b', { trace_ids: [idOf(1)] })));
  expect(read('b')).toBe(CALL + WRAP + AGENT);
  expect(await list()).toMatchObject({ status: 200, body: { items: [{ name: 'b', examples: 3 }] } });
});

it('a line that a person has edited stays as it is, also without a line break at its end', async () => {
  const edited = `\ufeff{ "inputs": {}, "source_run_id": "${idOf(1)}" }\r\n\n{"inputs":{"by":"hand"}}`;
  const { add, read, list } = await project({ 'runspan-sets/a.jsonl': edited });
  expect((await add('a', 'name:agent,wrap')).stdout).toBe('1 added, 1 kept: runspan-sets/a.jsonl\n');
  expect((await add('a', 'name:agent,wrap')).stdout).toBe('0 added, 2 kept: runspan-sets/a.jsonl\n');
  expect(read('a')).toBe(`${edited}\n${WRAP}`);
  expect((await list()).body).toEqual({ items: [{ name: 'a', examples: 3 }] });
});

it.each(['oops', '1', '{} {}'])('a file with the line %s is not changed', async (line) => {
  const { add, post, read } = await project({ 'runspan-sets/a.jsonl': `{"inputs":{}}\n\n${line}\n` });
  const detail = 'runspan-sets/a.jsonl:3 is no JSON object';
  expect(await add('a', 'name:agent')).toEqual({ code: 1, stdout: '', stderr: `runspan: ${detail}\n` });
  expect(await post('a', { run_ids: [idOf(1)] })).toMatchObject({ status: 422, body: { detail } });
  expect(read('a')).toBe(`{"inputs":{}}\n\n${line}\n`);
});

const HOSTILE = ['..', '.hidden', 'a..b', 'a/b', '../../a', 'a\\b', 'a\0', 'ä', '', 'x'.repeat(65)];
it.each(HOSTILE)('%j is no name of a set', async (name) => {
  const { add, post, folder } = await project();
  expect((await add(name, 'name:agent')).code).toBe(2);
  expect((await post(encodeURIComponent(name), { run_ids: [idOf(1)] })).status).toBeOneOf([404, 422]);
  expect(readdirSync(folder)).toEqual([]);
});

it('symbolic links are not followed', async () => {
  const outside = testFolder({ 'a.jsonl': '{}\n' });
  const { add, folder } = await project();
  symlinkSync(outside, join(folder, 'runspan-sets'));
  expect((await add('b', 'name:agent')).stderr).toBe('runspan: runspan-sets is a symbolic link\n');
  const other = await project({ 'runspan-sets/x.jsonl': '' });
  symlinkSync(join(outside, 'a.jsonl'), join(other.folder, 'runspan-sets/a.jsonl'));
  expect((await other.add('a', 'name:agent')).code).toBe(1);
  expect((await other.post('a', { run_ids: [idOf(1)] })).status).toBe(422);
  expect((await other.list()).body).toEqual({ items: [{ name: 'x', examples: 0 }] });
  expect([readdirSync(outside), readFileSync(join(outside, 'a.jsonl'), 'utf8')]).toEqual([['a.jsonl'], '{}\n']);
});

it('nothing is written for an unknown id, no match, or not 1 to 1,000 ids', async () => {
  const { add, post, folder } = await project();
  const ids = Array.from({ length: 1_000 }, () => idOf(1));
  const refused = [{ run_ids: ids, trace_ids: [idOf(9)] }, { run_ids: [idOf(9)] }, { trace_ids: [idOf(9)] }, {}];
  for (const body of refused) expect((await post('a', body)).status).toBe(422);
  expect(await add('a', 'name:none')).toEqual({ code: 1, stdout: '', stderr: 'runspan: nothing matches\n' });
  const { url } = await serve((_, response) => response.end('{"items":[{}],"next":"x"}'));
  const { code, stderr } = await runMain(['set', 'add', 'a', 'x', '--url', url]);
  expect([code, stderr]).toEqual([1, 'runspan: more than 1,000 match; narrow the filter\n']);
  expect(readdirSync(folder)).toEqual([]);
  expect((await post('a', { run_ids: ids })).body).toMatchObject({ added: 1, kept: 0 });
});
