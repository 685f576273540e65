// Untouched clients and servers of the Model Context Protocol, in two processes, with runspan/register.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { transformWithEsbuild } from 'vite';
import { expect, it } from 'vitest';
import type { RunRecord } from '#src/run/record.ts';
import { registered } from '../integrations/registered.ts';
import { testFolder } from '../support/test-folder.ts';
import { laterNode } from './later-node.ts';

const cwd = fileURLToPath(new URL('./today/', import.meta.url));
const register = import.meta.resolve('runspan/register');
const both = { NODE_OPTIONS: `--import ${register}` };
const sdks = ['1', '2'].flatMap((version) => [[version, 'stdio'] as const, [version, 'http'] as const]);
/** Both versions and both transports, for tests that start many processes or requests. */
const mixed = [['1', 'http'] as const, ['2', 'stdio'] as const];

/** Runs the client. `messages` are those that the server has received. */
async function run(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const path = join(testFolder(), 'messages');
  const command = [laterNode(), 'mcp-client.mjs', ...args];
  const ended = await registered(command, { ...env, MESSAGES: path }, cwd);
  expect([ended.code, ended.stderr]).toEqual([0, '']);
  // Requests over HTTP may overtake each other.
  const messages = readFileSync(path, 'utf8').trim().split('\n').sort();
  const runs = ended.runs.toSorted((one, other) => (one.dotted_order < other.dotted_order ? -1 : 1));
  return { ...ended, runs, messages };
}

const OWN = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;

/** Returns a message without what runspan adds. */
function asWithoutTracing(text: string): string {
  const message = JSON.parse(text);
  const meta = message.params?._meta ?? {};
  delete meta['runspan-trace'];
  if (meta.traceparent !== OWN) delete meta.traceparent;
  if (Object.keys(meta).length === 0) delete message.params?._meta;
  return JSON.stringify(message);
}

const metasOf = (messages: readonly string[]): unknown[] =>
  messages.flatMap((text) => JSON.parse(text).params?._meta ?? []);

const errorsOf = (runs: readonly RunRecord[]): unknown[] => runs.map(({ error }) => error?.split('\n')[0]);

const MODEL = '  openai.responses';
const CALLS = [
  ...['ask', MODEL, 'ask', MODEL, 'fail', MODEL, 'draw', 'resources/read', MODEL, 'prompts/get greet', MODEL],
  ...['ask', MODEL, 'prompts/get absent', 'wait', 'wait'],
];

it.each(sdks)('calls with the SDK %s over %s are one trace with the work of the server', async (version, kind) => {
  const bare = await run([version, kind, 'each']);
  const traced = await run([version, kind, 'each'], both);
  expect(traced.stdout).toBe(bare.stdout);
  expect(traced.messages.map(asWithoutTracing).sort()).toEqual(bare.messages);
  expect(bare.runs).toEqual([]);
  expect(traced.tree).toEqual(CALLS);

  const calls = traced.runs.filter(({ run_type }) => run_type !== 'llm');
  const [ask, , fail, draw, note, greet, , absent, cancelled, late] = calls;
  const about = (method: string) => ({ metadata: { 'mcp.method.name': method, 'mcp.server.name': 'kitchen' } });
  expect([ask, fail, draw, note, greet]).toMatchObject([
    {
      run_type: 'tool',
      inputs: { question: 'Tea?' },
      outputs: { content: [{ type: 'text', text: 'You said: Tea?' }] },
      extra: about('tools/call'),
    },
    {
      inputs: { question: 'Milk?' },
      outputs: { isError: true, content: [{ text: 'the kettle is broken' }] },
      error: 'the tool reported an error: the kettle is broken',
    },
    { inputs: {}, outputs: { content: [{ type: 'image', data: expect.stringContaining('image/png, 3000 bytes') }] } },
    { run_type: 'chain', inputs: { uri: 'note://tea' }, extra: about('resources/read') },
    { inputs: { prompt: 'greet', arguments: { name: 'Ann' } }, extra: about('prompts/get') },
  ]);
  const reasons = [absent, cancelled, late].map((one) => one?.extra?.runspan_end_reason);
  expect(reasons).toEqual([undefined, 'cancelled', undefined]);
  expect(errorsOf([absent, cancelled, late] as RunRecord[])).toEqual([
    expect.stringMatching(/^(Mcp|Protocol)Error: .*Prompt absent not found$/),
    expect.stringMatching(/^(Mcp|Sdk)Error: .*enough$/),
    expect.stringMatching(/^(Mcp|Sdk)Error: .*Request timed out$/),
  ]);
  const metas = metasOf(traced.messages);
  expect(metas).toContainEqual({ traceparent: OWN, 'own/list': [1], 'runspan-trace': ask?.dotted_order });
  const digits = fail?.id.replaceAll('-', '') ?? '';
  const traceparent = `00-${digits}-${digits.slice(16)}-01`;
  expect(metas).toContainEqual({ traceparent, 'runspan-trace': fail?.dotted_order });
});

it.each(mixed)('200 parallel calls with the SDK %s over %s have their own work below them', async (version, kind) => {
  const { stdout, runs } = await run([version, kind, 'many'], both);
  expect(JSON.parse(stdout)).toEqual(Array.from({ length: 200 }, (_, at) => `You said: question ${at}`));
  const calls = new Map(runs.filter(({ name }) => name === 'ask').map((one) => [one.id, one]));
  const work = runs.filter(({ name }) => name === 'openai.responses');
  expect([calls.size, work.length]).toEqual([200, 200]);
  for (const { inputs, parent_run_id, trace_id } of work) {
    const call = calls.get(parent_run_id ?? '');
    expect(inputs?.messages).toMatchObject([{ content: call?.inputs?.question }]);
    expect(trace_id).toBe(call?.id);
  }
});

it.each(mixed)(
  'a server with the SDK %s over %s records the requests of a client that is not traced',
  async (version, kind) => {
    const args = [version, kind, 'each'];
    const bare = await run(args);
    const { stdout, messages, runs, tree } = await run(args, { SERVER_IMPORT: register });
    expect([stdout, messages]).toEqual([bare.stdout, bare.messages]);
    // Each request over HTTP has a run too.
    const below = (line: string): string[] => (line === MODEL ? [`  ${line}`] : ['POST /mcp', `  ${line}`]);
    expect(tree).toEqual(kind === 'http' ? CALLS.flatMap(below) : CALLS);
    const failed = runs.filter(({ name, error }) => error !== undefined && name !== 'POST /mcp');
    expect(failed.map(({ name }) => name)).toEqual(['fail', 'prompts/get absent']);
  },
);

const OTHER = 'https://kitchen.example';

it('a server on another host gets the run only if its origin is listed', async () => {
  const args = ['2', 'http', 'each'];
  const bare = await run(args, { ORIGIN: OTHER });
  const traced = await run(args, { ...both, ORIGIN: OTHER });
  expect(traced.messages).toEqual(bare.messages);
  expect(traced.tree).toContain('POST /mcp');
  const listed = await run(args, { ...both, ORIGIN: OTHER, RUNSPAN_PROPAGATE_TO: OTHER });
  expect(listed.tree).toEqual(CALLS);
});

it('the server of a trace that sampling leaves out records nothing', async () => {
  const { messages, runs } = await run(['1', 'stdio', 'many'], { ...both, RUNSPAN_SAMPLE_RATE: '0' });
  expect(runs).toEqual([]);
  expect(metasOf(messages)).toHaveLength(200);
  for (const meta of metasOf(messages)) expect(meta).toMatchObject({ traceparent: expect.stringMatching(/-00$/) });
});

const oneProcess = {
  1: `import { Client } from '@modelcontextprotocol/sdk/client/index.js';
    import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
    import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';`,
  2: `import { Client, InMemoryTransport } from '@modelcontextprotocol/client';
    import { McpServer } from '@modelcontextprotocol/server';`,
};

/** Runs a program of one process that awaits `main` with a server, and a client that is not connected. */
async function runHere(
  [version, format, register]: readonly [version: 1 | 2, format: 'esm' | 'cjs', register: boolean],
  main: string,
  env?: Readonly<Record<string, string>>,
) {
  const code = `${oneProcess[version]}
    import { traceable } from 'runspan';
    import { wrapMCP } from 'runspan/mcp';
    const server = new McpServer({ name: 'kitchen', version: '1.0.0' });
    const client = new Client({ name: 'cook', version: '1.0.0' });
    const connect = async () => {
      const [ours, theirs] = InMemoryTransport.createLinkedPair();
      await server.connect(theirs);
      await client.connect(ours);
    };
    void (async () => {${main}})();`;
  const text = (await transformWithEsbuild(code, 'program.mjs', { format })).code;
  const options = register ? ['--import', import.meta.resolve('runspan/register')] : [];
  const type = format === 'esm' ? 'module' : 'commonjs';
  const ended = await registered([laterNode(), ...options, `--input-type=${type}`, '-e', text], env, cwd);
  expect([ended.code, ended.stderr]).toEqual([0, '']);
  return ended;
}

const WORK = `
  const work = traceable(async () => 'done', { name: 'work' });
  server.registerTool('boil', {}, async () => ({ content: [{ type: 'text', text: await work() }] }));
  await connect();
  await client.callTool({ name: 'boil' });`;

it.each([
  [1, 'esm', true],
  [1, 'cjs', true],
  [2, 'esm', true],
  [2, 'cjs', true],
  [1, 'esm', false],
  [2, 'cjs', false],
] as const)('with the SDK %i, %s and register: %s, a wrapped client and server record a call once', async (...how) => {
  const { tree } = await runHere(how, `wrapMCP(server); wrapMCP(client); wrapMCP(client); ${WORK}`);
  expect(tree).toEqual(['boil', '  work']);
});

it('the text of a failure is hidden with the outputs', async () => {
  const main = `
    server.registerTool('tell', {}, async () => ({ isError: true, content: [{ type: 'text', text: 'the secret' }] }));
    await connect();
    console.log((await client.callTool({ name: 'tell' })).content[0].text);`;
  const { stdout, runs } = await runHere([2, 'esm', true], main, { RUNSPAN_HIDE_OUTPUTS: 'true' });
  expect(stdout).toBe('the secret\n');
  expect(runs).toMatchObject([{ name: 'tell', error: 'the tool reported an error' }]);
  expect(JSON.stringify(runs)).not.toContain('the secret');
});

it.each([1, 2] as const)(
  'with the SDK %i, calls whose parameters are an instance of a class have one run each',
  async (version) => {
    const main = `
    class Params {
      name = 'boil';
    }
    server.registerTool('boil', {}, async () => ({ content: [{ type: 'text', text: 'done' }] }));
    await connect();
    wrapMCP(client);
    const params = new Params();
    for (let at = 0; at < 2; at++) console.log((await client.callTool(params)).content[0].text);
    console.log(JSON.stringify(params));`;
    const { tree, stdout } = await runHere([version, 'esm', false], main);
    expect(stdout).toBe('done\ndone\n{"name":"boil"}\n');
    expect(tree).toEqual(['boil', 'boil']);
  },
);

it('a rejection that the program does not handle ends it as without runspan', async () => {
  const main = `
    await connect();
    client.callTool({ name: 'absent' }, undefined, { signal: AbortSignal.abort('no') });`;
  const code = `process.on('unhandledRejection', (error) => console.log('unhandled', error.message)); ${main}`;
  const traced = await runHere([2, 'esm', true], code);
  expect(traced.stdout).toBe((await runHere([2, 'esm', false], code)).stdout);
  expect(traced.stdout).toMatch(/^unhandled .+\n$/);
});
