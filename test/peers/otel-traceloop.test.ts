// The runs of spans that Traceloop's packages emit. The expected runs are written by hand from the specifications, https://www.traceloop.com/docs/openllmetry/contributing/semantic-conventions (up to 0.22) and
// https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-spans.md (later).
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { createReceiver } from '#src/receiver.ts';
import type { RunRecord } from '#src/run/record.ts';
import { type OpenAiServer, startOpenAiServer } from '../support/openai-server.ts';
import { runNode } from '../support/program.ts';
import { asApplication, snippetWith } from './application.ts';

const program = fileURLToPath(new URL('./traceloop-program.mjs', import.meta.url));

let server: OpenAiServer;

beforeAll(async () => {
  server = await startOpenAiServer();
});

afterAll(() => server.close());

/** An expected run. `path` contains the names of its parents and its own name. */
interface Expected {
  readonly path: string;
  readonly type: string;
  readonly inputs?: object;
  /** Undefined if the span never ends. */
  readonly outputs?: object;
  readonly error?: string;
  readonly metadata?: object;
}

/** Returns the result of the program and its runs. */
async function traced(deed: string): Promise<{ result: unknown; runs: Expected[] }> {
  const { code, stdout, stderr } = await runNode([program, deed, server.url], { TRACELOOP_TELEMETRY: 'false' });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const { result, runs } = JSON.parse(stdout) as { result: unknown; runs: RunRecord[] };
  return { result, runs: sorted(runs.map((run) => shown(run, runs))) };
}

function shown(run: RunRecord, runs: readonly RunRecord[]): Expected {
  const { otel: _, 'service.name': __, ...metadata } = run.extra?.metadata ?? {};
  const path = run.dotted_order.split('.').map((part) => runs.find(({ id }) => part.endsWith(id))?.name);
  return {
    path: path.join(' > '),
    type: run.run_type,
    inputs: run.inputs ?? {},
    ...(run.end_time !== undefined && { outputs: run.outputs ?? {} }),
    ...(run.error !== undefined && { error: run.error.split('\n', 1)[0] as string }),
    metadata,
  };
}

/** Spans that start in the same millisecond have no order in time. */
function sorted(runs: readonly Expected[]): Expected[] {
  const order = ({ path, inputs, outputs }: Expected): string =>
    [path, JSON.stringify(inputs), outputs === undefined].join('\n');
  return runs.map((run) => ({ inputs: {}, metadata: {}, ...run })).sort((a, b) => (order(a) < order(b) ? -1 : 1));
}

const system = { role: 'system', content: 'Be brief.' };
const call = { type: 'function', function: { name: 'weather', arguments: '{"city":"Cork"}' } };
const tools = [
  { type: 'function', function: { name: 'weather', description: 'The weather.', parameters: { type: 'object' } } },
];
const usage = { input_tokens: 20, output_tokens: 9, total_tokens: 29 };
const parameters = { model: 'small', temperature: 0.5, max_tokens: 64, frequency_penalty: 0.25, tools };
const chat = (model: string, reason: string): object => ({
  ls_model_name: model,
  ls_model_type: 'chat',
  response_model: `${model}-2026`,
  finish_reasons: [reason],
});
const settings = { ls_invocation_params: parameters, ls_temperature: 0.5, ls_max_tokens: 64 };

test('instrumentation-openai 0.22 emits calls with indexed prompts and completions', async () => {
  // Content that is not text is JSON, even `null`. The ids of tool calls are missing.
  const user = { role: 'user', content: [{ type: 'text', text: 'Rain?' }] };
  const own = { ls_provider: 'OpenAI', 'llm.request.type': 'chat' };
  const { result, runs } = await traced('openai-0.22');
  expect(result).toEqual(['weather', 'It is raining.', 400]);
  expect(runs).toEqual(
    sorted([
      { path: 'answer', type: 'chain', outputs: {} },
      {
        path: 'answer > openai.chat',
        type: 'llm',
        inputs: { messages: [system, user] },
        outputs: {
          messages: [{ role: 'assistant', content: '', finish_reason: 'tool_calls', tool_calls: [call] }],
          usage_metadata: usage,
        },
        metadata: { ...own, ...chat('small', 'tool_calls'), ...settings, usage_metadata: usage },
      },
      {
        path: 'answer > openai.chat',
        type: 'llm',
        inputs: {
          messages: [system, user, { role: 'assistant', content: 'null' }, { role: 'tool', content: '12 C' }],
        },
        outputs: { messages: [{ role: 'assistant', content: 'It is raining.', finish_reason: 'stop' }] },
        metadata: { ...own, ...chat('streamed', 'stop'), ls_invocation_params: { model: 'streamed' } },
      },
      // The instrumentation never ends the span of a call that fails.
      { path: 'answer > openai.chat', type: 'llm', inputs: { messages: [system, user] } },
    ]),
  );
});

test('instrumentation-openai 0.27 emits calls with the messages of the GenAI conventions', async () => {
  const user = { role: 'user', content: 'Rain?' };
  const withId = { id: 'call_1', ...call };
  const own = { ls_provider: 'openai', 'gen_ai.operation.name': 'chat', response_id: 'chatcmpl-1' };
  const { result, runs } = await traced('openai-0.27');
  expect(result).toEqual(['weather', 'It is raining.', 400]);
  expect(runs).toEqual(
    sorted([
      { path: 'answer', type: 'chain', outputs: {} },
      {
        path: 'answer > chat small',
        type: 'llm',
        inputs: { messages: [system, user] },
        outputs: {
          messages: [{ role: 'assistant', finish_reason: 'tool_call', tool_calls: [withId] }],
          usage_metadata: usage,
        },
        metadata: { ...own, ...chat('small', 'tool_call'), ...settings, usage_metadata: usage },
      },
      {
        path: 'answer > chat streamed',
        type: 'llm',
        inputs: {
          messages: [
            system,
            user,
            { role: 'assistant', tool_calls: [withId] },
            { role: 'tool', tool_call_id: 'call_1', content: '12 C' },
          ],
        },
        outputs: { messages: [{ role: 'assistant', content: 'It is raining.', finish_reason: 'stop' }] },
        metadata: { ...own, ...chat('streamed', 'stop'), ls_invocation_params: { model: 'streamed' } },
      },
      { path: 'answer > chat broken', type: 'llm', inputs: { messages: [system, user] } },
    ]),
  );
});

test('instrumentation-langchain emits chains, models and tools, all below the active span', async () => {
  const own = { ls_provider: 'langchain' };
  const workflow = { ...own, 'gen_ai.operation.name': 'workflow', 'traceloop.span.kind': 'workflow' };
  const tool = { ...own, 'gen_ai.operation.name': 'execute_tool', 'traceloop.span.kind': 'task' };
  const constructed = (kwargs: object): object => expect.objectContaining({ kwargs: expect.objectContaining(kwargs) });
  const { result, runs } = await traced('langchain');
  expect(result).toEqual(['It rains.', 'rain in Cork', 'too far']);
  expect(runs).toEqual(
    sorted([
      { path: 'answer', type: 'chain', outputs: {} },
      {
        path: 'answer > RunnableSequence',
        type: 'chain',
        inputs: { question: 'Rain?' },
        outputs: constructed({ content: 'It rains.' }),
        metadata: workflow,
      },
      {
        path: 'answer > prompt',
        type: 'chain',
        inputs: { question: 'Rain?' },
        outputs: constructed({
          messages: [constructed({ content: 'Be brief.' }), constructed({ content: 'Rain?' })],
        }),
        metadata: workflow,
      },
      {
        path: 'answer > chat FakeListChatModel',
        type: 'llm',
        inputs: { messages: [system, { role: 'user', content: 'Rain?' }] },
        outputs: { messages: [{ role: 'assistant', content: 'It rains.', finish_reason: '' }] },
        metadata: { ...own, 'gen_ai.operation.name': 'chat', ls_model_type: 'chat' },
      },
      {
        path: 'answer > DynamicStructuredTool',
        type: 'tool',
        inputs: { city: 'Cork' },
        outputs: { output: 'rain in Cork' },
        metadata: tool,
      },
      {
        path: 'answer > DynamicStructuredTool',
        type: 'tool',
        outputs: {},
        error: 'RangeError: too far',
        metadata: tool,
      },
    ]),
  );
});

test("functions of Traceloop's SDK become a tree with its association properties", async () => {
  const associated = { session_id: 's1', thread_id: 's1', user_id: 'u1', 'traceloop.workflow.name': 'plan' };
  const kind = (value: string, path = ''): object => ({
    ...associated,
    'traceloop.span.kind': value,
    'traceloop.entity.path': path,
  });
  const said = { role: 'user', content: 'Rain?' };
  const { result, runs } = await traced('functions');
  const outputs = { days: 2, rain: true, things: ['coat', 'umbrella'], text: 'It is raining.', failed: 'too far' };
  expect(result).toEqual(outputs);
  expect(runs).toEqual(
    sorted([
      {
        path: 'plan',
        type: 'chain',
        inputs: { args: ['Cork', 2] },
        outputs,
        metadata: { ...kind('workflow'), 'traceloop.entity.version': 1 },
      },
      {
        path: 'plan > weather',
        type: 'tool',
        inputs: { at: 'Cork' },
        outputs: { at: 'Cork', rain: true },
        metadata: kind('tool'),
      },
      {
        path: 'plan > pack',
        type: 'chain',
        inputs: { input: ['coat'] },
        outputs: { output: ['coat', 'umbrella'] },
        metadata: { ...kind('task'), 'traceloop.entity.version': 2 },
      },
      {
        path: 'plan > say',
        type: 'chain',
        inputs: { input: 'Rain?' },
        outputs: { output: 'It is raining.' },
        metadata: kind('task'),
      },
      {
        path: 'plan > say > chat small',
        type: 'llm',
        inputs: { messages: [said] },
        outputs: {
          messages: [{ role: 'assistant', content: 'It is raining.', finish_reason: 'stop' }],
          usage_metadata: usage,
        },
        metadata: {
          ...associated,
          ...chat('small', 'stop'),
          ls_provider: 'openai',
          ls_invocation_params: { model: 'small' },
          usage_metadata: usage,
          'gen_ai.operation.name': 'chat',
          response_id: 'chatcmpl-1',
          'traceloop.entity.path': 'say',
        },
      },
      // The SDK never ends the span of a function that throws, and sets attributes only after the start.
      { path: 'plan > book', type: 'chain' },
      {
        path: 'plan > book > pay',
        type: 'tool',
        outputs: { output: 12.5 },
        metadata: kind('tool', 'book'),
      },
    ]),
  );
});

test('searches in vector databases become retrievers, and calls reported by hand become runs of models', async () => {
  const inWorkflow = { 'traceloop.workflow.name': 'find' };
  const counts = { input_tokens: 3, output_tokens: 2, total_tokens: 5 };
  const { result, runs } = await traced('vectors');
  expect(result).toEqual([2, 'found', 'Two.']);
  expect(runs).toEqual(
    sorted([
      {
        path: 'find',
        type: 'chain',
        outputs: { output: [2, 'found', 'Two.'] },
        metadata: { ...inWorkflow, 'traceloop.span.kind': 'workflow', 'traceloop.entity.path': '' },
      },
      {
        path: 'find > qdrant.search',
        type: 'retriever',
        outputs: {
          documents: [
            { page_content: '', type: 'Document', metadata: { id: 7, score: 0.75, title: 'Cats', dimensions: 2 } },
            { page_content: '', type: 'Document', metadata: { id: 9, score: 0.5, title: 'Dogs' } },
          ],
        },
        metadata: { ...inWorkflow, 'db.system': 'Qdrant', 'db.vector.query.result.matches_length': 2 },
      },
      {
        path: 'find > chroma.query',
        type: 'retriever',
        inputs: { embeddings: [{ dimensions: 3 }] },
        outputs: {
          documents: [
            {
              page_content: 'A cat.',
              type: 'Document',
              metadata: { id: 'a', score: 0.75, distance: 0.25, page: 3, dimensions: 1 },
            },
          ],
        },
        metadata: inWorkflow,
      },
      {
        path: 'find > llama.completion',
        type: 'llm',
        inputs: { messages: [{ role: 'user', content: 'Cats?' }] },
        outputs: {
          messages: [{ role: 'assistant', content: 'Two.', finish_reason: 'stop' }],
          usage_metadata: counts,
        },
        metadata: {
          ...inWorkflow,
          ls_model_name: 'llama',
          ls_model_type: 'llm',
          response_model: 'llama-3',
          finish_reasons: ['stop'],
          ls_invocation_params: { model: 'llama' },
          usage_metadata: counts,
          'llm.request.type': 'completion',
        },
      },
    ]),
  );
});

test('the program of the section about Traceloop sends the documented runs', async () => {
  const receiver = await createReceiver({ port: 0 });
  onTestFinished(() => receiver.close());
  const { code, stderr } = await runNode([asApplication(snippetWith('traceloop.initialize').code)], {
    RUNSPAN_ENDPOINT: receiver.url,
    OPENAI_BASE_URL: server.url,
    OPENAI_API_KEY: 'key',
    TRACELOOP_TELEMETRY: 'false',
  });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const runs = await receiver.runs();
  const named = (name: string): Partial<RunRecord> | undefined => runs.find((run) => run.name === name);
  const associated = { extra: { metadata: { session_id: 's1', thread_id: 's1' } } };
  const plan = named('plan');
  const below = { parent_run_id: plan?.id, ...associated };
  expect(runs).toHaveLength(3);
  expect(plan).toMatchObject({ run_type: 'chain', inputs: { input: 'Cork' }, ...associated });
  expect(named('weather')).toMatchObject({ run_type: 'tool', outputs: { output: 'rain in Cork' }, ...below });
  expect(named('chat small')).toMatchObject({
    run_type: 'llm',
    inputs: { messages: [{ role: 'user', content: 'Shorter, please: rain in Cork' }] },
    outputs: { usage_metadata: usage },
    ...below,
  });
});
