import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { DEFAULT_SCOPE, MemoryStore, parsedQuery, type RunFields, type RunOperation } from '#src/receiver.ts';
import { idOf, run } from '../browser/runs.ts';
import { read } from '../package/repository.ts';
import { masked, snippetsOf } from '../package/snippets.ts';
import { start } from '../receiver/wire.ts';
import { linkRunspan } from '../support/folders.ts';
import { startLocalModel } from '../support/local-model/server.js';
import { runNode, startRunspan } from '../support/program.ts';
import { testFolder } from '../support/test-folder.ts';

/** A recorded call of the application below, with 10 + 5 tokens of a model that costs $0.15 and $0.60 for a million. */
const call = (question: string, answer: string): RunFields => ({
  name: 'openai.chat.completions',
  run_type: 'llm',
  inputs: { messages: [{ role: 'user', content: question }] },
  outputs: {
    model: 'gpt-4o-mini',
    choices: [{ index: 0, message: { role: 'assistant', content: answer }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
  },
  extra: { metadata: { ls_invocation_params: { model: 'gpt-4o-mini' } } },
});

const OPERATIONS: readonly RunOperation[] = [
  run(1, { ms: 9, name: 'answer', inputs: { question: 'Oslo?' }, outputs: { outputs: 'sunny' } }),
  run(2, { ms: 1, parent: 1, ...call('Oslo?', 'sunny') }),
  run(3, { ms: 9, name: 'api' }),
  run(4, { ms: 1, parent: 3, ...call('A title?', 'Weather') }),
  run(5, { ms: 1, parent: 3, name: 'answer', inputs: { question: 'Rome?' }, outputs: { outputs: 'rainy' } }),
  run(6, { ms: 1, parent: 5, ...call('Rome?', 'rainy') }),
];

const line = (question: string, outputs: string, others: object = {}): string =>
  JSON.stringify({ inputs: { question }, outputs: { outputs }, ...others });
const OSLO = line('Oslo?', 'sunny', { source_run_id: idOf(1) });
const BERN = line('Bern?', 'foggy', { metadata: { name: 'bern' } });
const ROME = line('Rome?', 'rainy', { source_run_id: idOf(5) });

const fixture = (index: number): string => `runspan-sets/weather/${idOf(index)}.trace.json`;

/** Keeps the `fetch` that it finds when it is imported, like the clients of SDKs. */
const APP = `
const { fetch: send } = globalThis;
export async function answer(question) {
  const response = await send((process.env.MODEL_URL ?? 'http://127.0.0.1:9') + '/v1/chat/completions', {
    method: 'POST',
    body: JSON.stringify({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: question }] }),
  });
  const body = await response.json();
  if (!response.ok) throw new Error(body.error.message);
  return body.choices[0].message.content;
}
`;

const testWith = (scores: string): string => `
import { isDeepStrictEqual } from 'node:util';
import { test } from 'node:test';
import { runSet } from 'runspan/testing';
const run = async ({ question }) => (await import('../app.mjs')).answer(question);
const same = ({ outputs, example }) => isDeepStrictEqual(outputs, example.outputs);
test('the set', () => runSet('weather', { run, scores: { ${scores} } }));
`;

/** Creates a project with a set and a test of it, which has these scores. */
async function makeProject(lines: readonly string[], scores = 'same', files: Readonly<Record<string, string>> = {}) {
  const store = new MemoryStore();
  await store.apply(DEFAULT_SCOPE, OPERATIONS);
  const { url } = await start({ store });
  const path = testFolder({
    'package.json': JSON.stringify({ name: 'weather', type: 'module' }),
    'runspan-sets/weather.jsonl': lines.map((one) => `${one}\n`).join(''),
    'app.mjs': APP,
    'test/weather.set.test.mjs': testWith(scores),
    ...files,
  });
  linkRunspan(path, ['vitest', '.bin']);
  const gate = async (args: readonly string[] = [], env?: Record<string, string>) => {
    const command = ['test', '--set', 'weather', '--url', url, ...args];
    const { stdout, ...others } = await startRunspan(command, env, path).ended;
    return { ...others, lines: stdout.replace(/[\da-f]{8}-[\da-f-]{27}\)/g, 'ID)').split('\n'), stdout };
  };
  const write = (name: string, text: string): void => writeFileSync(join(path, name), text);
  return { path, store, url, gate, write, read: (name: string) => readFileSync(join(path, name), 'utf8') };
}

const HEAD = ['| case | before | now | tokens | cost | trace |', '| --- | --- | --- | --- | --- | --- |'];
/** 10 × $0.15 + 5 × $0.60 for a million tokens. */
const USAGE = '15 tokens (10 in, 5 out) | $0.00000450';

describe('runspan test --set', () => {
  it('writes the fixtures and a test that has a gap, and keeps those that exist', async () => {
    const project = await makeProject([OSLO, ROME, BERN]);
    rmSync(join(project.path, 'test/weather.set.test.mjs'));
    expect(await project.gate()).toMatchObject({
      code: 1,
      stdout: '',
      stderr:
        `runspan: wrote ${fixture(1)}\nrunspan: wrote ${fixture(5)}\n` +
        'runspan: bern runs only with --live, because its run is not stored\n' +
        'runspan: wrote test/weather.set.test.mjs; complete the TODO in it, and run the command again\n',
    });
    // The run is below a root, whose other call is no part of the case.
    const { name, inputs, calls } = JSON.parse(project.read(fixture(5)));
    expect([name, inputs, calls.length, calls[0].below]).toEqual(['answer', { question: 'Rome?' }, 1, 'answer']);
    project.write(fixture(5), project.read(fixture(5)).replace('"rainy"', '"snow"'));
    const { code, lines, stderr } = await project.gate();
    expect([code, stderr.match(/wrote/)]).toEqual([1, null]);
    expect(lines[2]).toContain('❌ failed `complete the TODO in this test; no model call was made');
    expect(project.read(fixture(5))).toContain('"snow"');
  });

  it('prints a table, and stores the runs and the scores in the receiver', async () => {
    const scores = 'same, length: async ({ outputs }) => outputs.outputs.length / 2';
    const project = await makeProject([OSLO, ROME, BERN], scores);
    const { code, lines } = await project.gate();
    const row = (id: string): string =>
      `| \`${id}\` | – | same: true, length: 2.5 | ${USAGE} | [trace](${project.url}/?trace=ID) |`;
    const total = '3 cases, 2 judged, 0 failed, 30 tokens (20 in, 10 out), $0.00000900';
    const rows = [row(idOf(1)), row(idOf(5)), '| `bern` | – | not run | – | – | – |'];
    expect([code, lines]).toEqual([0, [...HEAD, ...rows, '', total, '']]);
    const { items } = await project.store.traces(DEFAULT_SCOPE, parsedQuery({ limit: 2 }, 'traces'));
    const stored = items.map(({ name, trace }) => [name, trace.model_calls, trace.feedback?.map(({ key }) => key)]);
    const names = [`weather · ${idOf(5)}`, `weather · ${idOf(1)}`];
    expect(stored).toEqual(names.map((name) => [name, 1, ['length', 'same']]));
  });

  it('compares with an earlier table by the ids of the cases', async () => {
    const score = 'length: ({ outputs }) => outputs.outputs.length';
    const project = await makeProject([OSLO, ROME], score);
    const first = await project.gate();
    project.write('same.md', `# A comment\n\n${first.stdout.replaceAll(' |', '   |').replaceAll('\n', '\r\n')}`);
    const same = await project.gate(['--baseline', 'same.md']);
    expect([same.code, same.lines.at(-2)]).toEqual([0, expect.stringContaining('2 cases, 2 judged, 0 worse')]);
    const table = (oslo: string, rome: string): string =>
      `${HEAD.join('\n')}\n| \`${idOf(5)}\` | – | ${rome} |\n| \`${idOf(1)}\` | – | ${oslo} |\n`;
    const compared = async (text: string) => {
      project.write('before.md', text);
      const { code, lines } = await project.gate(['--baseline', 'before.md']);
      return [code, ...lines.slice(2, -3).map((one) => one.split(' | ').slice(1, 3).join(' to '))].join('; ');
    };
    const fallen = await compared(table('length: 6', 'length: 4.5'));
    expect(fallen).toBe('1; length: 6 to ❌ length: 5; length: 4.5 to length: 5');
    const risen = await compared(table('❌ failed `a ¦ b`', 'not run'));
    expect(risen).toBe('0; failed to length: 5; not run to length: 5');
    const other = await compared(table('length: 5', 'length: 5').replace(idOf(5), 'other'));
    expect(other).toBe('0; length: 5 to length: 5; new to length: 5; length: 5 to gone');
    const missing = await compared(table('length: 5, a: true', 'length: 5'));
    expect(missing).toBe('1; length: 5, a: true to ❌ length: 5; length: 5 to length: 5');
    const ofOthers = table('length: 5', 'length: 5').replace(idOf(5), 'other').replace(idOf(1), 'another');
    expect(await compared(ofOthers)).toBe('2');
    project.write('test/weather.set.test.mjs', testWith(`${score}, a: () => false`));
    const isFalse = await compared(table('length: 5, a: false', 'length: 5, a: true'));
    const now = 'length: 5, a: false';
    expect(isFalse).toBe(`1; ${now} to ${now}; length: 5, a: true to ❌ ${now}`);
    const isNew = await compared(table(now, now).replace(idOf(5), 'other'));
    expect(isNew).toBe(`1; ${now} to ${now}; new to ❌ ${now}; ${now} to gone`);
    project.write('app.mjs', 'export const answer = () => { throw "no"; };');
    const failed = await compared(table('length: 5', 'failed'));
    expect(failed.replace(/; no model call was made .*? again`/g, '`')).toBe(
      '1; length: 5 to ❌ failed `no`; failed to failed `no`',
    );
    for (const args of [['--set', '../weather'], ['--failed'], ['0190']])
      expect((await project.gate(args)).code).toBe(2);
    expect((await startRunspan(['test', '--live'], {}, project.path).ended).code).toBe(2);
    for (const text of ['', 'length: 5\n', table('length: five', 'length: 5')]) expect(await compared(text)).toBe('2');
    expect((await project.gate(['--baseline', 'none.md'])).code).toBe(2);
  });

  it('finds a case worse that was judged before and is not run now', async () => {
    const project = await makeProject([OSLO, BERN]);
    project.write('before.md', '| `bern` | – | same: true | – | – | – |\n');
    const { code, lines } = await project.gate(['--baseline', 'before.md']);
    expect([code, lines[3]]).toEqual([1, '| `bern` | same: true | ❌ not run | – | – | – |']);
  });

  it('fails a case that the test judges twice, from a folder whose name has a space', async () => {
    const twice = testWith('same: () => false').replace(/^test.*$/m, '$&\n$&');
    const project = await makeProject([OSLO], '', { 'more tests/weather.set.test.mjs': twice });
    const { code, lines } = await project.gate(['--out', 'more tests']);
    expect([code, lines[2]]).toEqual([1, expect.stringContaining('❌ failed `the test runs the set more than once`')]);
  });

  it('judges and stores what was returned, although programs and scores change the values that they get', async () => {
    const scores = `sorted: ({ outputs }) => outputs.list.sort()[1] === 3,
      same: ({ outputs, example }) => outputs.list[0] === 3 && example.inputs.question === 'Oslo?'`;
    const project = await makeProject([`\uFEFF${OSLO}`], scores);
    const changing = testWith(scores)
      .replace('({ question })', '(inputs)')
      .replace('question)', 'inputs.question).then(() => ({ list: [3, 1, delete inputs.question] }))');
    project.write('test/weather.set.test.mjs', changing);
    const { code, lines } = await project.gate();
    expect([code, lines[2]]).toEqual([0, expect.stringContaining('| sorted: true, same: true |')]);
    const { items } = await project.store.traces(DEFAULT_SCOPE, parsedQuery({ limit: 1 }, 'traces'));
    const outputs = await project.store.payload(DEFAULT_SCOPE, `${items[0]?.id}`, 'outputs');
    expect(outputs).toBe('{"list":[3,1,true]}');
  });

  it('says that a request differs, and sends the requests with --live', async () => {
    const project = await makeProject([OSLO, BERN], 'some: ({ outputs }) => outputs.outputs.length > 0', {
      'app.mjs': APP.replace('content: question', "content: question + '!'"),
    });
    const { code, lines } = await project.gate();
    const difference = /failed `no recorded call .*"Oslo\?", got "Oslo\?!"; use --live, or record the program again` /;
    expect([code, lines[2]]).toEqual([1, expect.stringMatching(difference)]);
    const model = await startLocalModel();
    onTestFinished(() => model.close());
    const live = await project.gate(['--live'], { MODEL_URL: model.url });
    expect([live.code, live.lines.at(-2)]).toEqual([0, expect.stringContaining('2 cases, 2 judged, 0 failed, ')]);
    const questions = model.requests.map(({ text }) => /"content":"(.*?)"/.exec(text)?.[1]);
    expect(questions).toEqual(['Oslo?!', 'Bern?!']);
  });

  it('names a line that is no example, and reads a set with a byte order mark', async () => {
    const project = await makeProject([OSLO]);
    const ended = async (text: string) => {
      project.write('runspan-sets/weather.jsonl', text);
      const { code, stderr } = await project.gate();
      return [code, stderr.split('\n')[0]];
    };
    const isNone = 'runspan: expected line 2 of runspan-sets/weather.jsonl to be ';
    for (const bad of ['{"inputs":', 'null', '{"outputs":{}}', '{"inputs":"a"}'])
      expect(await ended(`${OSLO}\n${bad}\n`)).toEqual([2, `${isNone}a JSON object with \`inputs\``]);
    expect(await ended(`${OSLO}\n${OSLO}\n`)).toEqual([2, `${isNone}another example than ${idOf(1)}`]);
    expect(await ended(`\uFEFF${OSLO}\r\n\r\n`)).toEqual([0, `runspan: wrote ${fixture(1)}`]);
  });

  it('fails only the case whose fixture is broken', async () => {
    const project = await makeProject([OSLO, ROME]);
    await project.gate();
    project.write(fixture(1), '{');
    const { code, lines } = await project.gate();
    expect([code, lines[2]]).toEqual([
      1,
      expect.stringContaining(`❌ failed \`Expected ${fixture(1)} to be a fixture `),
    ]);
    expect(lines[3]).toContain('| same: true |');
  });

  it('needs no receiver once the fixtures are written, and runs a classifier that returns false', async () => {
    const project = await makeProject([OSLO], 'same: ({ outputs }) => outputs.outputs === false', {
      'app.mjs': APP.replace('message.content;', "message.content === 'rainy';"),
    });
    await project.gate();
    const { code, stdout } = await startRunspan(['test', '--set', 'weather'], {}, project.path).ended;
    expect([code, stdout.split('\n')[2]]).toEqual([0, `| \`${idOf(1)}\` | – | same: true | ${USAGE} | – |`]);
  });

  it.each([
    ['no case', [], 'same', {}, '0 cases, 0 judged, 0 failed'],
    ['no score', [OSLO], '', {}, '1 case, 0 judged, 0 failed, 15 tokens (10 in, 5 out), $0.00000450'],
    ['a dead runner', [OSLO], 'same', { 'app.mjs': 'process.kill(process.pid, 9);' }, '1 case, 0 judged, 1 failed'],
  ])('fails if nothing was judged: %s', async (_, lines, scores, files, total) => {
    const project = await makeProject(lines, scores, files);
    const { code, lines: printed } = await project.gate();
    expect([code, printed.at(-2)]).toEqual([1, total]);
  });

  it('keeps the results of the cases before the death of a runner', async () => {
    const scores = 'same: ({ example }) => example.inputs.question === "Oslo?" || process.exit(3)';
    const { code, lines } = await (await makeProject([OSLO, ROME], scores)).gate();
    expect([code, lines[2], lines[3]]).toEqual([1, expect.stringContaining('| same: true |'), expect.anything()]);
    expect(lines[3]).toContain('| ❌ failed `the test ended with 1` |');
  });

  it('shows what a score has thrown, and hostile names, without a broken table', async () => {
    const thrown =
      'same: () => { throw "a|b`c\\n| d |\\u001b[2J sk-proj-abcdefghijkl1234567890ABCDEFGH"; }, none: () => {}';
    const project = await makeProject([line('Oslo?', 'sunny', { metadata: { name: '../a|b' } })], thrown);
    const model = await startLocalModel();
    onTestFinished(() => model.close());
    const { code, lines } = await project.gate(['--live'], { MODEL_URL: model.url });
    expect(code).toBe(1);
    const cells =
      /^\| `[\da-f]{12}` \| – \| ❌ same: false `a¦b'c ¦ d ¦ \[2J \[Redacted\]`, none: false `undefined` \| 4 /;
    expect(lines[2]).toMatch(cells);
    expect(lines).toHaveLength(6);
  });

  it('runs the test of the page in Vitest, which fails without the command too', async () => {
    const snippet = snippetsOf('testing', read('docs/testing.md')).find(({ code }) => code.includes('runSet('));
    const project = await makeProject([OSLO], 'same', {
      'runspan-sets/support.jsonl': `${OSLO}\n${ROME.replace('"rainy"', '"wet"')}\n`,
      'src/answer.js': APP,
      'test/support.set.test.js': `${snippet?.code}`.replace('node:test', 'vitest').replace('}));', '}), 60_000);'),
    });
    const { stdout, code } = await project.gate(['--set', 'support', '--runner', 'vitest']);
    const links = / \[trace\]\(.*?\) \|$/gm;
    expect([code, masked(stdout.replace(links, ' – |'))]).toEqual([1, masked(`${snippet?.prints}`)]);
    const vitest = ['node_modules/vitest/vitest.mjs', 'run', 'test/support.set.test.js'];
    const ended = await runNode(vitest, { NO_COLOR: '1' }, project.path);
    expect(ended.stderr).toContain(`RunspanError: ${idOf(5)}: same: false, length: 5\n`);
    expect(ended.code).toBe(1);
  });
});
