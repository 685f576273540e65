// The programs of docs/testing.md about sets.
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { serve } from '../http/server.ts';
import { root } from '../support/folders.ts';
import { startProgram } from '../support/program.ts';
import { guide, projectWith } from './guides.ts';
import { laterNode } from './later-node.ts';

const today = join(root, 'test/peers/today');
const own = { metadata: { note: 'ok' }, source_run_id: '0193b3a0-1111-7000-8000-000000000001' };
const shoes = { inputs: { item: 'shoes' }, outputs: { text: 'You can return shoes.' } };
const food = { inputs: { item: 'food' }, outputs: { text: 'No.' } };

it('each line of a set is a test of Vitest, and an example of LangSmith', async () => {
  const code = [{ ...shoes, ...own }, food].map((one) => JSON.stringify(one)).join('\n');
  const programs = guide('docs/testing.md').filter(({ file = '' }) =>
    /^(returns|refunds\.test|import)\.js$/.test(file),
  );
  const manifest = { file: 'package.json', code: '{ "type": "module" }' };
  const project = projectWith([...programs, manifest, { file: 'runspan-sets/refunds.jsonl', code }], today);
  const tests = [laterNode(), join(today, 'node_modules/vitest/vitest.mjs'), 'run'];
  const { stdout } = await startProgram(tests, { NO_COLOR: '1' }, project).ended;
  expect(stdout).toMatch(/Tests .*1 failed \| 1 passed/);
  const answer = { instance_flags: { dataset_examples_multipart_enabled: true }, id: 'dataset', example_ids: [] };
  const { url, seen } = await serve((_, response) => response.end(JSON.stringify(answer)));
  const env = { LANGSMITH_ENDPOINT: url, LANGSMITH_API_KEY: 'key' };
  expect(await startProgram([laterNode(), 'import.js'], env, project).ended).toMatchObject({ code: 0, stderr: '' });
  const parts = seen
    .at(-1)
    ?.body.match(/^\{.*\}/gm)
    ?.map((json) => JSON.parse(json));
  expect(parts).toEqual([own, shoes.inputs, shoes.outputs, {}, food.inputs, food.outputs]);
});
