// The differences to LangSmith's package, one test for each row of the list in docs/from-langsmith.md.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as ai from 'ai';
import OpenAI from 'openai';
import { expect, onTestFinished, test, vi } from 'vitest';
import { toHeaders, traceable as traceableOfCore } from '#src/index.ts';
import {
  Client,
  getCurrentRunTree,
  RunTree,
  traceable,
  withRunTree,
  wrapAISDK,
  wrapOpenAI,
  wrapSDK,
} from '#src/langsmith.ts';
import { record } from '../instrument/recorder.ts';
import { environmentOf } from '../support/environment.ts';
import { root } from '../support/folders.ts';
import { logLines } from '../support/log-lines.ts';
import { startOpenAiServer } from '../support/openai-server.ts';
import '../support/tracing-off.ts';

const messages = [{ role: 'user' as const, content: 'Is it raining?' }];

async function openai() {
  const server = await startOpenAiServer();
  onTestFinished(() => server.close());
  return new OpenAI({ baseURL: server.url, apiKey: 'key', maxRetries: 0 });
}

const words = traceable(async function* () {
  yield* ['a', 'b'];
});

const rows: Readonly<Record<string, () => unknown>> = {
  async Metadata() {
    const recorder = record();
    environmentOf({ LANGSMITH_NOTE: 'from the environment' });
    await wrapOpenAI(await openai()).chat.completions.create({ model: 'gpt-4o', messages });
    await traceable(async () => ({ usage_metadata: { total_tokens: 3 } }), { name: 'model' })();
    const [call, model] = recorder.runs;
    expect(call?.extra?.metadata).toMatchObject({
      response_model: expect.any(String),
      response_id: expect.any(String),
    });
    expect(JSON.stringify(recorder.runs)).not.toContain('from the environment');
    expect(model).toMatchObject({ outputs: { usage_metadata: { total_tokens: 3 } }, extra: { metadata: {} } });
  },

  async 'Inherited metadata'() {
    const recorder = record();
    const theirs = traceable(async () => 1, { name: 'of langsmith' });
    const ours = traceableOfCore(async () => 1, { name: 'of runspan' });
    await traceable(async () => {
      getCurrentRunTree().metadata.user = 'ada';
      await theirs();
      await ours();
    })();
    expect(recorder.run('of langsmith').extra?.metadata).toEqual({ user: 'ada' });
    expect(recorder.run('of runspan').extra?.metadata).toEqual({});
  },

  async Errors() {
    const recorder = record();
    class LateError extends Error {}
    const fail = async (_input: Error): Promise<never> => {
      throw new LateError('late', { cause: new TypeError('no') });
    };
    await expect(traceable(fail)(new RangeError('given'))).rejects.toThrow('late');
    const [run] = recorder.runs;
    expect(run?.error?.split('\n')).toEqual(
      expect.arrayContaining(['LateError: late', expect.stringMatching(/^ +at /), 'Caused by: TypeError: no']),
    );
    expect(run?.inputs).toMatchObject({ input: { name: 'RangeError', message: 'given', stack: expect.any(String) } });
  },

  async 'Cancelled streams'() {
    const recorder = record();
    for await (const word of words()) if (word === 'a') break;
    const [run] = recorder.runs;
    expect(run?.extra?.runspan_end_reason).toBe('cancelled');
    expect(run?.error).toBeUndefined();
  },

  async Events() {
    const recorder = record();
    for await (const word of words()) word.trim();
    expect(recorder.runs[0]?.events).toEqual([{ name: 'new_token', time: expect.any(String) }]);
  },

  async Secrets() {
    const recorder = record({ limits: { payloadCharacters: 1_000 } });
    await traceable(async (given: object) => given)({ password: 'hunter2', text: 'x'.repeat(2_000) });
    expect(recorder.runs[0]?.inputs).toEqual({
      password: '[Redacted]',
      text: expect.stringMatching(/x\[Truncated: \d+ characters]x/),
    });
  },

  async '`processInputs`, `processOutputs` and `aggregator`'() {
    const recorder = record();
    const secrets = traceable(
      async function* (_text: string) {
        yield 'hunter2';
      },
      {
        name: 'words',
        processInputs: () => {
          throw new TypeError('hunter2');
        },
        aggregator: async (chunks) => chunks,
      },
    );
    for await (const word of secrets('hunter2')) expect(word).toBe('hunter2');
    expect(recorder.runs[0]).toMatchObject({
      inputs: { error: '`inputs` of "words" threw TypeError' },
      outputs: { error: '`aggregate` of "words" returned a promise instead of a value' },
    });
  },

  async '`hideInputs`, `hideOutputs`, `hideMetadata` and `anonymizer`'() {
    const recorder = record();
    const lines = logLines('warn');
    const fail = (): never => {
      throw new Error('hunter2');
    };
    const client = new Client({ hideInputs: fail, hideMetadata: fail, hideOutputs: (outputs) => outputs });
    const answer = async (_text: string): Promise<Uint8Array> => {
      getCurrentRunTree().addEvent({ name: 'note', text: 'hunter2' });
      return new Uint8Array(4_000);
    };
    await traceable(answer, { client, metadata: { user: 'hunter2' } })('hunter2');
    const [run] = recorder.runs;
    expect(JSON.stringify(run)).not.toContain('hunter2');
    expect(run?.inputs).toEqual({});
    expect(run?.extra?.metadata).toEqual({ user: '[Redacted]' });
    expect(run?.events).toEqual([{ name: 'note', time: expect.any(String) }]);
    expect(run?.attachments).toBeUndefined();
    expect(lines).toHaveLength(2);
  },

  async Headers() {
    record();
    const client = new Client({ hideMetadata: (metadata) => metadata });
    const sent = () => [toHeaders().baggage, getCurrentRunTree().toHeaders().baggage];
    const baggage = ['runspan-project=default', 'langsmith-project=default'];
    expect(await traceable(sent, { client, metadata: { user: 'ada' } })()).toEqual(baggage);
  },

  async '`client.updateRun`'() {
    const recorder = record();
    const lines = logLines('warn');
    const client = new Client();
    const tree = new RunTree({ name: 'by hand', client });
    await tree.postRun();
    await client.updateRun(tree.id, { outputs: { a: 1 }, end_time: Date.now() });
    await client.updateRun(tree.id, { outputs: { a: 2 } });
    expect(recorder.runs[0]?.outputs).toEqual({ a: 1 });
    expect(lines).toEqual([expect.stringContaining('updateRun: expected the id of a run that this process created')]);
  },

  async '`extra`'() {
    const recorder = record();
    const tree = new RunTree({ name: 'by hand', extra: { metadata: { a: 1 }, note: 'x' }, serialized: { note: 'x' } });
    await tree.postRun();
    const { runtime: _, ...extra } = recorder.runs[0]?.extra ?? {};
    expect(extra).toEqual({ metadata: { a: 1 } });
    expect(recorder.runs[0]).not.toHaveProperty('serialized');
  },

  async '`replicas`'() {
    const recorder = record();
    const lines = logLines('warn');
    const client = { createRun: vi.fn(), updateRun: vi.fn() };
    const updates = { name: 'other', outputs: { outputs: 2 } };
    const replicas = [
      ['one', updates],
      { projectName: 'two', reroot: true },
      { projectName: 'three', client },
    ] as never;
    const answer = traceable(async () => 1, { name: 'answer', replicas });
    await traceable(() => answer(), { name: 'around' })();
    const copies = recorder.runs.filter(({ session_name }) => session_name !== 'default');
    expect(copies.map(({ name, outputs }) => [name, outputs]).sort()).toEqual([
      ['answer', { outputs: 1 }],
      ['other', { outputs: 1 }],
    ]);
    expect(copies.every(({ parent_run_id }) => parent_run_id !== undefined)).toBe(true);
    expect(client.createRun).not.toHaveBeenCalled();
    expect(lines).toEqual([expect.stringContaining('a replica with a `client` gets no runs')]);
  },

  async Arguments() {
    const recorder = record();
    const given = [Promise.race([]), [1].values(), new ReadableStream(), function add() {}];
    await traceable(async (..._args: unknown[]) => 1)(...given);
    expect(recorder.runs[0]?.inputs).toEqual({
      args: ['[Promise]', '[Iterator]', '[ReadableStream]', '[Function add]'],
    });
  },

  async '`this`'() {
    record();
    const owner = {
      name: 'ada',
      greet: traceable(async function (this: { name: string }) {
        return this.name;
      } as never),
    };
    expect(await (owner.greet as () => Promise<string>)()).toBe('ada');
  },

  async Generators() {
    const recorder = record();
    let hasStarted = false;
    const count = traceable(function* () {
      hasStarted = true;
      yield 1;
      return 2;
    });
    const promise: unknown = count();
    expect(promise).toBeInstanceOf(Promise);
    const numbers = (await promise) as Generator<number>;
    expect(hasStarted).toBe(false);
    expect([...numbers]).toEqual([1]);
    expect(recorder.runs[0]?.outputs).toEqual({ outputs: [1] });
  },

  async '`tracingEnabled: false`'() {
    const recorder = record();
    const parent = new RunTree({ name: 'parent' });
    await parent.postRun();
    const inside = traceable(async () => 1, { name: 'inside', tracingEnabled: true, client: new Client() });
    const off = traceable(
      async () => {
        await inside();
        await new Client().createRun({ name: 'created' });
        await parent.createChild({ name: 'child' }).postRun();
      },
      { tracingEnabled: false },
    );
    await off();
    expect(recorder.runs.map(({ name }) => name)).toEqual(['parent', 'child', 'created']);
  },

  async 'While tracing is off'() {
    const tree = new RunTree({ name: 'by hand', tracingEnabled: true });
    await tree.postRun();
    await new Client().createRun({ name: 'created' });
    expect(await withRunTree(tree, () => 1)).toBe(1);
    await tree.patchRun();
    const answer = async (text: string) => {
      getCurrentRunTree().metadata = { user: 'u1' };
      return text + getCurrentRunTree().name;
    };
    for (const options of [{}, { tracingEnabled: true }])
      expect(await traceable(answer, options)('a ')).toBe('a untraced');
  },

  async '`wrapOpenAI`'() {
    const recorder = record();
    const client = await openai();
    const wrapped = wrapOpenAI(wrapOpenAI(client));
    expect(wrapped).toBe(client);
    const tree = new RunTree({ name: 'tree' });
    await client.embeddings.create({ model: 'text-embedding-3-small', input: ['rain'] });
    await traceable(() => wrapped.chat.completions.create({ model: 'gpt-4o', messages }, { langsmithExtra: tree }), {
      name: 'around',
    })();
    const stream = await wrapped.chat.completions.create(
      { model: 'gpt-4o', messages, stream: true },
      { timeout: 5_000 },
    );
    for await (const chunk of stream) chunk.choices.at(0);
    const [embedding, , call, streamed] = recorder.runs;
    expect(recorder.runs).toHaveLength(4);
    expect(embedding?.run_type).toBe('embedding');
    expect(call).toMatchObject({ name: 'tree', inputs: { messages } });
    expect(streamed).toMatchObject({ inputs: { messages, stream: true }, outputs: { object: 'chat.completion' } });
  },

  '`wrapSDK`'() {
    record();
    expect(wrapSDK({ size: () => 2 }).size()).toBe(2);
  },

  async '`wrapAISDK`'() {
    const recorder = record();
    const lines = logLines('warn');
    const { MockLanguageModelV3 } = await import('ai/test');
    const tokens = { total: 3, noCache: 3, cacheRead: 0, cacheWrite: 0 };
    const model = new MockLanguageModelV3({
      doGenerate: {
        content: [{ type: 'text', text: 'yes' }],
        finishReason: { unified: 'stop', raw: 'stop' },
        usage: { inputTokens: tokens, outputTokens: { total: 4, text: 4, reasoning: 0 } },
        warnings: [],
      },
    });
    const { generateText } = wrapAISDK(ai, { processInputs: (inputs: object) => inputs });
    expect((await generateText({ model, prompt: 'Is it raining?' })).text).toBe('yes');
    expect(recorder.runs).toEqual([]);
    expect(lines).toEqual([expect.stringContaining('`processInputs` is not supported, so the calls are not traced')]);
  },

  async '`getLangchainCallbacks`'() {
    record();
    const { getLangchainCallbacks } = await import('#src/langsmith.ts');
    const callbacks = await traceable(() => getLangchainCallbacks())();
    expect(callbacks).toEqual([expect.objectContaining({ name: 'runspan_callback_handler' })]);
  },
};

test.each(Object.entries(rows))('%s', async (_, check) => void (await check()));

test('each row of the documentation has a test', () => {
  const page = readFileSync(join(root, 'docs/from-langsmith.md'), 'utf8');
  const section = page.slice(page.indexOf('## Differences'), page.indexOf("## Read with LangSmith's client"));
  const titles = Array.from(section.matchAll(/^- \*\*(.*?)\*\*/gm), ([, title]) => title);
  expect(titles).toEqual(Object.keys(rows));
});
