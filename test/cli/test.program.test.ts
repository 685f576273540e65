import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DEFAULT_SCOPE, MemoryStore, type RunFields, type RunOperation } from '#src/receiver.ts';
import { idOf, run as makeRun, type RunIdea } from '../browser/runs.ts';
import { serve } from '../http/server.ts';
import { start } from '../receiver/wire.ts';
import { linkRunspan } from '../support/folders.ts';
import { closeServer } from '../support/listen.ts';
import { type Ended, runNode, startRunspan } from '../support/program.ts';
import { testFolder } from '../support/test-folder.ts';

interface Project {
  readonly path: string;
  write(name: string, text: string): void;
  read(name: string): string;
  json(name: string): Record<string, unknown>;
  runspan(args: readonly string[], env?: Record<string, string>): Promise<Ended>;
  /** Calls `replay` with a fixture. `options` is JavaScript. The program prints what `shown` returns, or the error. */
  replay(fixture: string, options?: string, env?: Record<string, string>): Promise<Record<string, unknown>>;
}

function makeProject(manifest: Record<string, unknown> = {}): Project {
  const path = testFolder();
  const write = (name: string, text: string): void => writeFileSync(join(path, name), text);
  write('package.json', JSON.stringify({ name: 'weather', type: 'module', ...manifest }));
  linkRunspan(path);
  const read = (name: string): string => readFileSync(join(path, name), 'utf8');
  return {
    path,
    write,
    read,
    json: (name) => JSON.parse(read(name)),
    runspan: (args, env) => startRunspan(args, env, path).ended,
    async replay(fixture, options = '{}', env) {
      write(
        'replay.mjs',
        `import { outlineOf, replay } from 'runspan/testing';
        const shown = ({ runs, ...others }) => ({ ...others, runs: outlineOf(runs).split('\\n') });
        const failed = ({ code, message }) => ({ code, message });
        console.log(JSON.stringify(await replay(${JSON.stringify(fixture)}, ${options}).then(shown, failed)));`,
      );
      const { stdout, stderr } = await runNode(['replay.mjs'], env, path);
      expect(stderr).toBe('');
      return JSON.parse(stdout);
    },
  };
}

interface Asked {
  readonly messages: readonly { readonly role?: string; readonly content?: unknown }[];
}

/**
 * Starts a model that asks for the weather once, and then repeats the result of the tool. `questions` contains the last
 * message of each request.
 */
async function startModel() {
  const questions: unknown[] = [];
  const { url, seen, server } = await serve((_, response) => {
    const { messages }: Asked = JSON.parse(`${seen.at(-1)?.body}`);
    const { role, content } = messages.at(-1) ?? {};
    questions.push(content);
    const call = { id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } };
    const message =
      role === 'tool'
        ? { role: 'assistant', content: `It is ${content}.` }
        : { role: 'assistant', content: null, tool_calls: [call] };
    const choices = [{ index: 0, message, finish_reason: 'stop' }];
    response.setHeader('content-type', 'application/json');
    response.end(
      JSON.stringify({ id: `answer-${questions.length}`, object: 'chat.completion', model: 'small', choices }),
    );
  });
  return { url, questions, close: () => closeServer(server) };
}

const AGENT = `
import { traceable } from 'runspan';
import { weather } from './tool.mjs';
const tool = traceable(weather, { name: 'weather', runType: 'tool' });
export const agent = traceable(
  async (question) => {
    const messages = [{ role: 'user', content: question }];
    for (;;) {
      const response = await fetch((process.env.MODEL_URL ?? 'http://127.0.0.1:9') + '/v1/chat/completions', {
        method: 'POST',
        body: JSON.stringify({ model: 'small', messages }),
      });
      const body = await response.json();
      if (!response.ok) throw new Error(body.error.message);
      const { message } = body.choices[0];
      if (message.tool_calls === undefined) return message.content;
      const results = message.tool_calls.map(async (call) => ({
        role: 'tool',
        tool_call_id: call.id,
        content: await tool(JSON.parse(call.function.arguments)),
      }));
      messages.push(message, ...(await Promise.all(results)));
    }
  },
  { name: 'agent' },
);
`;
const MAIN = `import { agent } from './agent.mjs';\nconsole.log(await agent(process.argv[2] ?? 'How is Oslo?'));\n`;
const FAILING = `export async function weather({ city }) { throw new RangeError('no city ' + city); }\n`;
const working = (result: string): string => `export async function weather() { return '${result}'; }\n`;

/** Creates a project with an agent, and runs the agent once under `runspan dev`. */
async function recorded(tool: string, ...args: string[]) {
  const project = makeProject();
  const model = await startModel();
  project.write('agent.mjs', AGENT);
  project.write('main.mjs', MAIN);
  project.write('tool.mjs', tool);
  const command = ['--', process.execPath, 'main.mjs', ...args];
  await project.runspan(['dev', '--store', 'runs.db', '--port', '0', ...command], { MODEL_URL: model.url });
  return { project, model };
}

/** The output of a command without ids and times. */
const steady = (text: string): string =>
  text.replace(/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g, 'ID').replace(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/g, 'TIME');

const test = ['test', '--store', 'runs.db'];

describe('runspan test', () => {
  it('writes a test of a failed step that fails until the step is fixed, without a model', async () => {
    const { project, model } = await recorded(FAILING);
    await model.close();
    const { stdout, stderr, code } = await project.runspan(test);
    expect({ stdout: steady(stdout), stderr, code }).toEqual({
      stdout:
        'from trace ID, agent, TIME\n' +
        'wrote test/agent-weather.trace.json with 1 model call\n' +
        'wrote test/agent-weather.test.mjs\n' +
        'run it with: node --test test/agent-weather.test.mjs\n',
      stderr: '',
      code: 0,
    });
    expect(project.read('test/agent-weather.test.mjs').replace(/trace [\da-f-]{36}/, 'trace ID')).toBe(
      `import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { outlineOf, replay } from 'runspan/testing';

test('agent > weather does not fail', async () => {
  // In trace ID, weather failed with "RangeError: no city Oslo"
  const trace = await replay(new URL('./agent-weather.trace.json', import.meta.url));
  assert.deepEqual(trace.runs[0]?.inputs, { input: 'How is Oslo?' });
  const steps = trace.runs.filter(({ name }) => name === 'weather');
  assert.ok(steps.length > 0, outlineOf(trace));
  assert.ok(steps.every(({ error }) => error === undefined), outlineOf(trace));
  assert.ok(steps.every(({ end_time }) => end_time !== undefined), outlineOf(trace));
});
`,
    );
    const run = () => runNode(['--test', 'test/agent-weather.test.mjs'], {}, project.path);
    const red = await run();
    expect(red.code).toBe(1);
    expect(red.stdout).toContain('weather (tool): RangeError: no city Oslo');
    project.write('tool.mjs', working('sunny'));
    expect((await run()).code).toBe(0);
    // The program goes on with a call that is not recorded.
    expect(await project.replay('test/agent-weather.trace.json')).toEqual({
      wasStopped: true,
      notes: [],
      runs: [
        'agent (chain): open',
        '  openai.chat.completions (llm)',
        '  weather (tool)',
        '  openai.chat.completions (llm): open',
      ],
    });
  });

  it('writes a test of the same calls, which names what a tool has changed, and can be recorded again', async () => {
    const { project, model } = await recorded(working('sunny'));
    await project.runspan(test);
    const written = project.read('test/agent.test.mjs');
    expect(written).toContain(`
  assert.deepEqual(outlineOf(trace).split('\\n'), [
    'agent (chain)',
    '  openai.chat.completions (llm)',
    '  weather (tool)',
    '  openai.chat.completions (llm)'
  ]);
  assert.deepEqual(trace.runs[0]?.inputs, { input: 'How is Oslo?' });
  const inputsOf = (tool) => trace.runs.filter(({ name }) => name === tool).map(({ inputs }) => inputs);
  assert.deepEqual(inputsOf('weather'), [ { city: 'Oslo' } ]);
  assert.deepEqual(trace.runs[0]?.outputs, { outputs: 'It is sunny.' });
`);
    const fixture = project.read('test/agent.trace.json');
    await project.runspan(test);
    expect(project.read('test/agent.trace.json')).toBe(fixture);
    expect(model.questions).toEqual(['How is Oslo?', 'sunny']);
    expect((await runNode(['--test', 'test/agent.test.mjs'], {}, project.path)).code).toBe(0);
    project.write('tool.mjs', working('rainy'));
    const { code, message } = await project.replay('test/agent.trace.json');
    expect(code).toBe('RUNSPAN_REPLAY_MISMATCH');
    expect(message).toContain(
      'no recorded call matches; the nearest is call 2 below agent:\n  messages[2].content: recorded "sunny", got "rainy"\n',
    );
    const accepted = await project.replay('test/agent.trace.json', `{ mode: 'failed' }`);
    expect(accepted.notes).toEqual(['messages[2].content: recorded "sunny", got "rainy"']);
    // Nothing of this was sent.
    expect(model.questions).toHaveLength(2);
    const env = { MODEL_URL: model.url };
    expect(await project.replay('test/agent.trace.json', `{ liveFrom: 2 }`, env)).toMatchObject({ notes: [] });
    expect(model.questions).toEqual(['How is Oslo?', 'sunny', 'rainy']);
    await project.replay('test/agent.trace.json', `{ record: true }`, env);
    expect(model.questions).toHaveLength(5);
    await model.close();
    expect(await project.replay('test/agent.trace.json')).toMatchObject({ notes: [] });
  });

  it('fails if the program makes fewer calls, or records no such trace', async () => {
    const { project } = await recorded(working('sunny'));
    await project.runspan(test);
    project.write('agent.mjs', AGENT.replace('message.tool_calls === undefined', 'true'));
    const fewer = await project.replay('test/agent.trace.json');
    expect(fewer).toMatchObject({ code: 'RUNSPAN_REPLAY_MISMATCH' });
    expect(fewer.message).toContain('these recorded calls were not made: openai.chat.completions (2)');
    project.write('main.mjs', `console.error('out of order');`);
    const none = await project.replay('test/agent.trace.json');
    expect(none).toMatchObject({ code: 'RUNSPAN_REPLAY_FAILED' });
    expect(none.message).toMatch(/^The program has recorded no trace named "agent": .*main\.mjs\nout of order/);
  });

  it('writes a test that fails if the program fails before the step, or ends meanwhile', async () => {
    const { project, model } = await recorded(FAILING);
    await model.close();
    await project.runspan(test);
    const run = () => runNode(['--test', 'test/agent-weather.test.mjs'], {}, project.path);
    project.write(
      'agent.mjs',
      AGENT.replace('const messages', `if (true) throw new Error('no plan');\nconst messages`),
    );
    const early = await run();
    expect(early.stdout).toContain('these recorded calls were not made: openai.chat.completions (1)');
    // Another branch makes a call that is not recorded, and the tool, which is not fixed, takes longer.
    project.write('agent.mjs', AGENT);
    project.write('main.mjs', `import { agent } from './agent.mjs';\nawait agent('How is Oslo?');`);
    project.write(
      'tool.mjs',
      `export async function weather({ city }) {
        void fetch('http://127.0.0.1:9/v1/chat/completions', { method: 'POST', body: '{"model":"small","messages":[]}' });
        await new Promise((resolve) => setTimeout(resolve, 60_000));
      }`,
    );
    const open = await run();
    expect(open.stdout).toContain('weather (tool): open');
  });

  it('lets no model call of the program through that is not sent with fetch or cannot be read', async () => {
    const { project, model } = await recorded(working('sunny'));
    await project.runspan(test);
    const calls: [string, string][] = [
      [`request(url, { method: 'POST' }).on('error', resolve).end('{}')`, 'a model call to 127.0.0.1'],
      [`fetch(url, { method: 'POST', body: new Blob(['{"messages":[]}']) }).then(resolve)`, 'cannot read the body'],
    ];
    for (const [call, problem] of calls) {
      project.write(
        'tool.mjs',
        `import { request } from 'node:http';
        const url = '${model.url}/v1/chat/completions';
        export async function weather() {
          await new Promise((resolve) => ${call});
          return 'sunny';
        }`,
      );
      expect((await project.replay('test/agent.trace.json')).message).toContain(problem);
    }
    expect(model.questions).toHaveLength(2);
  });

  it('sends a recorded HTTP request to a server again, if its body is recorded', async () => {
    const project = makeProject();
    const model = await startModel();
    project.write('agent.mjs', AGENT);
    project.write('tool.mjs', working('sunny'));
    project.write(
      'server.mjs',
      `import { createServer } from 'node:http';
      import { agent } from './agent.mjs';
      const server = createServer(async (request, response) => {
        let body = '';
        for await (const chunk of request) body += chunk;
        response.end(await agent(JSON.parse(body).question));
      });
      server.listen(process.env.PORT ?? 0, async () => {
        if (process.env.RUNSPAN_REPLAY !== undefined) return;
        const body = JSON.stringify({ question: 'How is Rome?', password: 'hunter2' });
        const response = await fetch('http://127.0.0.1:' + server.address().port + '/chat?a=1', { method: 'POST', body });
        await response.text();
        server.close();
      });`,
    );
    const dev = (...options: string[]) => {
      const args = ['dev', ...options, '--store', 'runs.db', '--port', '0', '--', process.execPath, 'server.mjs'];
      return project.runspan(args, { MODEL_URL: model.url });
    };
    await dev();
    const { code, stderr } = await project.runspan(test);
    expect([code, steady(stderr)]).toEqual([
      1,
      'runspan: trace ID cannot be replayed: the body of its HTTP request is not recorded; record it with runspan dev --with-body, as JSON of at most 1 MiB\n',
    ]);
    expect(existsSync(join(project.path, 'test'))).toBe(false);
    await dev('--with-body');
    await model.close();
    await project.runspan(test);
    const { request } = project.json('test/post-chat.trace.json');
    const contentType = 'text/plain;charset=UTF-8';
    const body = '{"question":"How is Rome?","password":"[Redacted]"}';
    expect(request).toEqual({ method: 'POST', path: '/chat', contentType, body });
    expect(await project.replay('test/post-chat.trace.json')).toMatchObject({
      runs: [
        'POST /chat (chain)',
        '  agent (chain)',
        '    openai.chat.completions (llm)',
        '    weather (tool)',
        '    openai.chat.completions (llm)',
      ],
    });
  });

  it('keeps secrets out of the fixture, and says which argument is masked', async () => {
    const { project } = await recorded(working('sunny'), 'Oslo?', '--api-key', 'sk-abcdefgh12345678');
    const { stdout } = await project.runspan(test);
    expect(stdout).toContain('note: an argument is masked');
    expect(project.read('test/agent.trace.json')).not.toContain('sk-abcdefgh12345678');
  });

  it('keeps a test file that exists, and writes its fixture again', async () => {
    const { project } = await recorded(FAILING);
    await project.runspan(test);
    project.write('test/agent-weather.test.mjs', '// mine\n');
    const { stdout } = await project.runspan(test);
    expect(stdout).toContain('kept test/agent-weather.test.mjs\n');
    expect(project.read('test/agent-weather.test.mjs')).toBe('// mine\n');
  });
});

/** Returns a run that starts a second after the run with the number before, and takes half a second. */
const run = (index: number, fields: RunIdea = {}): RunOperation =>
  makeRun(index, { at: 1_000 * index, ms: 500, inputs: { question: 'why?' }, ...fields });

const CHAT: RunFields = {
  name: 'openai.chat.completions',
  run_type: 'llm',
  inputs: { messages: [{ role: 'user', content: 'why?' }] },
  outputs: { choices: [{ index: 0, message: { role: 'assistant', content: 'so' } }] },
};

const LATER = '2026-11-20T07:00:30.000000Z';

describe('runspan test of stored traces', () => {
  const store = new MemoryStore();
  const ready = store.apply(DEFAULT_SCOPE, [
    run(1, { name: 'first', error: 'Error: no page 4711\n  at x' }),
    run(2, { ...CHAT, parent: 1 }),
    run(3, { name: 'first', error: 'Error: no page 12\n  at x' }),
    run(4, { ...CHAT, parent: 3 }),
    run(5, { name: 'second' }),
    run(6, { ...CHAT, parent: 5 }),
    run(7, { parent: 5, name: 'search', run_type: 'tool', error: 'Error: no index' }),
    run(8, { name: 'cut' }),
    run(9, { ...CHAT, parent: 8, inputs: { messages: '[Truncated: 5 more items]' } }),
    run(10, { ...CHAT, parent: 8, inputs: {} }),
    run(11, { parent: 8, name: 'chat small', run_type: 'llm' }),
    run(12, { name: 'refused', error: 'Error: HTTP 400' }),
    run(13, { ...CHAT, parent: 12 }),
    run(14, {
      ...CHAT,
      parent: 12,
      error: 'HTTP 400: no',
      outputs: { status: 400, body: { error: { message: 'no' } } },
    }),
    run(15, { name: 'none' }),
    run(16, { name: 'crashed', error: 'Error: no index', end_time: '2026-11-20T07:00:59.000000Z' }),
    run(17, { parent: 16, name: 'north', error: 'Error: no index', end_time: '2026-11-20T07:00:58.000000Z' }),
    run(18, {
      ...{ parent: 16, name: 'south', error: 'Interrupted: the program ended before the run did' },
      extra: { runspan_end_reason: 'interrupted' },
    }),
    run(19, { name: 'own', error: 'Error: no plan' }),
    run(20, { parent: 19, name: 'tried', error: 'Error: no index' }),
    run(21, { parent: 19, name: 'later' }),
    run(22, { name: 'all', end_time: LATER }),
    run(23, { ...CHAT, parent: 22 }),
    ...[{ city: 'Bern' }, { city: 'Oslo' }, { city: 'Rome' }].map((inputs, at) => {
      const failed = at > 0 && { error: 'Error: closed' };
      return run(24 + at, { parent: 22, name: 'look', run_type: 'tool', inputs, ...failed, end_time: LATER });
    }),
    run(27, { name: 'shop' }),
    run(28, { ...CHAT, parent: 27, outputs: { tool_calls: [{ id: 'c', name: 'refund', args: {} }] } }),
    run(29, {
      ...CHAT,
      parent: 27,
      inputs: { messages: [{ role: 'tool', tool_call_id: 'c', status: 'error', content: 'Too old' }] },
    }),
  ]);

  async function ask(args: readonly string[], manifest?: Record<string, unknown>) {
    await ready;
    const { url } = await start({ store });
    const project = makeProject(manifest);
    const ended = await project.runspan(['test', ...args, '--url', url]);
    return { project, ...ended };
  }

  it('writes one test for each distinct failure', async () => {
    const { stdout, code, project } = await ask(['--failed']);
    expect(stdout.match(/^wrote .*test\.mjs$/gm)).toEqual([
      'wrote test/all-look.test.mjs',
      // A later run shows that the failure of a nested run was handled.
      'wrote test/own.test.mjs',
      // Not the run that was interrupted by the failure.
      'wrote test/crashed-north.test.mjs',
      'wrote test/refused-openai-chat-completions.test.mjs',
      'wrote test/second-search.test.mjs',
      'wrote test/first.test.mjs',
    ]);
    expect(code).toBe(0);
    // The later of the two traces that differ in a number.
    expect(project.read('test/first.test.mjs')).toContain(`In trace ${idOf(3)}, first failed with "Error: no page 12"`);
  });

  const esm = (runner: string) =>
    `import { strict as assert } from 'node:assert';\nimport { test } from '${runner}';\nimport {`;
  const ofJest = `import { strict as assert } from 'node:assert';\nimport { join } from 'node:path';\nimport {`;
  const ofCommonJs = `const { strict: assert } = require('node:assert');\nconst { join } = require('node:path');\nconst {`;

  it.each<[string, Record<string, string>, extension: string, head: string, end: string, type?: string]>([
    ['Vitest with TypeScript', { vitest: '4', typescript: '6' }, 'ts', esm('vitest'), '}, 70_000);'],
    ['Vitest', { vitest: '4' }, 'js', esm('vitest'), '}, 70_000);'],
    ['Jest', { jest: '30' }, 'js', ofCommonJs, '}, 70_000);', 'commonjs'],
    ['Jest with TypeScript', { jest: '30', typescript: '6' }, 'ts', ofJest, '}, 70_000);', 'commonjs'],
    ['no test runner', { typescript: '6' }, 'mjs', esm('node:test'), '});'],
  ])('writes a test for %s', async (_, devDependencies, extension, head, end, type = 'module') => {
    const { project } = await ask([idOf(5), '--out', 'checks', '--name', 'oslo'], { type, devDependencies });
    const text = project.read(`checks/oslo.test.${extension}`);
    expect(text.startsWith(head)).toBe(true);
    expect(text.trimEnd().endsWith(end)).toBe(true);
  });

  it('leaves a gap for the call, if the trace does not tell how the program was started', async () => {
    const { stdout, project } = await ask([idOf(5)]);
    expect(stdout).toContain('complete the TODO in the test');
    const text = project.read('test/second-search.test.mjs');
    expect(text).toContain('// TODO: call the function that has recorded "second".');
    expect(text).toContain(`const inputs = { question: 'why?' };`);
    expect(text).toContain(`replay(new URL('./second-search.trace.json', import.meta.url), { run });`);
  });

  it('expects that the call of a tool succeeds that has failed, among several that have', async () => {
    const { project } = await ask([idOf(22), '--name', 'failed']);
    expect(project.read('test/failed.test.mjs')).toContain(`
  assert.ok(steps.length > 1, outlineOf(trace));
  assert.ok(steps.every(({ error, inputs }) => error === undefined || JSON.stringify(inputs) !== '{"city":"Oslo"}'), outlineOf(trace));
`);
  });

  it('names a failed tool that only the messages tell of', async () => {
    const { stdout, project } = await ask([idOf(27)]);
    expect(stdout).toContain('note: refund failed, as the messages tell\n');
    const text = project.read('test/shop.test.mjs');
    expect(text).toContain('  // refund failed, as the messages tell\n');
    expect(stdout + text).not.toContain('Too old');
  });

  it('expects the same calls in any order, if they were concurrent', async () => {
    const { project } = await ask([idOf(22), '--name', 'same', '--mode', 'strict']);
    const text = project.read('test/same.test.mjs');
    expect(text).toContain(`
  assert.deepEqual(outlineOf(trace, { ordered: false }).split('\\n'), [
    'all (chain)',
    '  look (tool): Error: closed',
    '  look (tool): Error: closed',
    '  look (tool)',
    '  openai.chat.completions (llm)'
  ]);`);
    const expected = "new Set([ { city: 'Bern' }, { city: 'Oslo' }, { city: 'Rome' } ])";
    expect(text).toContain(`  assert.deepEqual(new Set(inputsOf('look')), ${expected});`);
  });

  it('sends the call that failed, because its recorded answer is the failure', async () => {
    const { project, stdout } = await ask([idOf(12)]);
    expect(stdout).toContain('note: the failed step is a model call, so the test sends this call to the service\n');
    const { calls } = project.json('test/refused-openai-chat-completions.trace.json');
    expect(calls).toMatchObject([{ status: 200 }, { isLive: true }]);
  });

  it('names each call that cannot be replayed', async () => {
    const { stderr, code } = await ask([idOf(8)]);
    expect({ stderr, code }).toEqual({
      stderr:
        `runspan: trace ${idOf(8)} cannot be replayed: ` +
        'cut > openai.chat.completions: it is truncated; raise `limits` of `configure`; ' +
        'cut > openai.chat.completions: its inputs are hidden; ' +
        'cut > chat small: its request is not recorded; `runspan dev` records the requests that are sent with fetch\n',
      code: 1,
    });
    expect((await ask([idOf(15)])).stderr).toBe(
      `runspan: trace ${idOf(15)} cannot be replayed: it has no model calls\n`,
    );
  });
});
