// The runs of spans that Traceloop's packages emit. The expected runs are written by hand from the specifications,
// https://www.traceloop.com/docs/openllmetry/contributing/semantic-conventions and
// https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-spans.md.
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RunRecord } from '#src/run/record.ts';
import { type OpenAiServer, startOpenAiServer } from '../support/openai-server.ts';
import { runNode } from '../support/program.ts';
import { startReceiver } from '../support/receiver.ts';
import { asApplication, snippetWith } from './application.ts';
import { type DrawnRun, drawn, inOrder, printedBy } from './otel-runs.ts';

let server: OpenAiServer;
beforeAll(async () => {
  server = await startOpenAiServer();
});
afterAll(() => server.close());

const QUIET = { TRACELOOP_TELEMETRY: 'false' };

async function traced(deed: string): Promise<{ result: unknown; runs: DrawnRun[] }> {
  const { result, runs } = await printedBy<{ result: unknown; runs: RunRecord[] }>(
    'traceloop-program.mjs',
    [deed, server.url],
    process.execPath,
    QUIET,
  );
  return { result, runs: drawn(runs) };
}

const usage = { input_tokens: 20, output_tokens: 9, total_tokens: 29 };
const says = (content: string, finish_reason = 'stop') => ({ role: 'assistant', content, finish_reason });

test('instrumentation-langchain emits chains, models and tools, all below the active span', async () => {
  const own = { ls_provider: 'langchain' };
  const workflow = { ...own, 'gen_ai.operation.name': 'workflow', 'traceloop.span.kind': 'workflow' };
  const tool = {
    name: 'DynamicStructuredTool',
    type: 'tool',
    metadata: { ...own, 'gen_ai.operation.name': 'execute_tool', 'traceloop.span.kind': 'task' },
  };
  const chain = { type: 'chain', inputs: { question: 'Rain?' }, metadata: workflow };
  const constructed = (kwargs: object): object => expect.objectContaining({ kwargs: expect.objectContaining(kwargs) });
  const prompt = [constructed({ content: 'Be brief.' }), constructed({ content: 'Rain?' })];
  const { result, runs } = await traced('langchain');
  expect(result).toEqual(['It rains.', 'rain in Cork', 'too far']);
  expect(runs).toEqual([
    {
      name: 'answer',
      type: 'chain',
      below: inOrder([
        { name: 'RunnableSequence', ...chain, outputs: constructed({ content: 'It rains.' }) },
        { name: 'prompt', ...chain, outputs: constructed({ messages: prompt }) },
        {
          name: 'chat FakeListChatModel',
          type: 'llm',
          inputs: {
            messages: [
              { role: 'system', content: 'Be brief.' },
              { role: 'user', content: 'Rain?' },
            ],
          },
          outputs: { messages: [says('It rains.', '')] },
          metadata: { ...own, 'gen_ai.operation.name': 'chat', ls_model_type: 'chat' },
        },
        { ...tool, inputs: { city: 'Cork' }, outputs: { output: 'rain in Cork' } },
        { ...tool, error: 'RangeError: too far' },
      ]),
    },
  ]);
});

test("functions of Traceloop's SDK become a tree with its association properties", async () => {
  const associated = { session_id: 's1', thread_id: 's1', user_id: 'u1', 'traceloop.workflow.name': 'plan' };
  const kind = (value: string, path = ''): Record<string, unknown> => ({
    ...associated,
    'traceloop.span.kind': value,
    'traceloop.entity.path': path,
  });
  const { result, runs } = await traced('functions');
  const outputs = { days: 2, rain: true, things: ['coat', 'umbrella'], text: 'It is raining.', failed: 'too far' };
  expect(result).toEqual(outputs);
  const call: DrawnRun = {
    name: 'chat small',
    type: 'llm',
    inputs: { messages: [{ role: 'user', content: 'Rain?' }] },
    outputs: { messages: [says('It is raining.')], usage_metadata: usage },
    metadata: expect.objectContaining({ ...associated, 'traceloop.entity.path': 'say', ls_model_name: 'small' }),
  };
  const pay = { name: 'pay', type: 'tool', outputs: { output: 12.5 }, metadata: kind('tool', 'book') };
  expect(runs).toEqual(
    inOrder([
      {
        name: 'plan',
        type: 'chain',
        inputs: { args: ['Cork', 2] },
        outputs,
        metadata: { ...kind('workflow'), 'traceloop.entity.version': 1 },
        below: [
          {
            name: 'weather',
            type: 'tool',
            inputs: { at: 'Cork' },
            outputs: { at: 'Cork', rain: true },
            metadata: kind('tool'),
          },
          {
            name: 'pack',
            type: 'chain',
            inputs: { input: ['coat'] },
            outputs: { output: ['coat', 'umbrella'] },
            metadata: { ...kind('task'), 'traceloop.entity.version': 2 },
          },
          {
            name: 'say',
            type: 'chain',
            inputs: { input: 'Rain?' },
            outputs: { output: 'It is raining.' },
            metadata: kind('task'),
            below: [call],
          },
          // The SDK never ends the span of a function that throws, and sets attributes only after the start.
          { name: 'book', type: 'chain', isOpen: true, below: [pay] },
        ],
      },
    ]),
  );
});

test('searches in vector databases become retrievers, and calls reported by hand become runs of models', async () => {
  const inWorkflow = { 'traceloop.workflow.name': 'find' };
  const found = (page_content: string, metadata: object) => ({ page_content, type: 'Document', metadata });
  const { result, runs } = await traced('vectors');
  expect(result).toEqual([2, 'found', 'Two.']);
  expect(runs).toMatchObject([
    {
      name: 'find',
      outputs: { output: [2, 'found', 'Two.'] },
      below: [
        {
          name: 'chroma.query',
          type: 'retriever',
          inputs: { embeddings: [{ dimensions: 3 }] },
          outputs: { documents: [found('A cat.', { id: 'a', score: 0.75, distance: 0.25, page: 3, dimensions: 1 })] },
          metadata: inWorkflow,
        },
        {
          name: 'llama.completion',
          type: 'llm',
          inputs: { messages: [{ role: 'user', content: 'Cats?' }] },
          outputs: {
            messages: [says('Two.')],
            usage_metadata: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
          },
          metadata: { ...inWorkflow, ls_model_name: 'llama', response_model: 'llama-3', ls_model_type: 'llm' },
        },
        {
          name: 'qdrant.search',
          type: 'retriever',
          outputs: {
            documents: [
              found('', { id: 7, score: 0.75, title: 'Cats', dimensions: 2 }),
              found('', { id: 9, score: 0.5, title: 'Dogs' }),
            ],
          },
          metadata: { ...inWorkflow, 'db.system': 'Qdrant', 'db.vector.query.result.matches_length': 2 },
        },
      ],
    },
  ]);
});

test('the program of the section about Traceloop sends the documented runs', async () => {
  const receiver = await startReceiver();
  const { code, stderr } = await runNode([asApplication(snippetWith('traceloop.initialize').code)], {
    RUNSPAN_ENDPOINT: receiver.url,
    OPENAI_BASE_URL: server.url,
    OPENAI_API_KEY: 'key',
    ...QUIET,
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
