// Runs of spans and log records that other packages emit. The expected runs are written by hand, from the conventions, the
// requests of the programs and the answers of the local model.
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createReceiver } from '#src/receiver.ts';
import { startLocalModel } from '../support/local-model/server.js';
import { startNode } from '../support/program.ts';
import { type DrawnRun, drawn, inOrder } from './otel-runs.ts';

async function printedBy(program: string, args: string[], env: Record<string, string> = {}): Promise<string> {
  const path = fileURLToPath(new URL(program, import.meta.url));
  const { code, stdout, stderr } = await startNode([path, ...args], env).ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout;
}

/** Draws runs that are given as JSON. */
function treesIn(json: string): DrawnRun[] {
  return drawn(JSON.parse(json.replaceAll(/"server\.port":\d+/g, '"server.port":8080')));
}

async function treesOf(...args: Parameters<typeof printedBy>): Promise<DrawnRun[]> {
  return treesIn(await printedBy(...args));
}

/** Returns the runs of a program that sends its spans and log records to a receiver. */
async function treesOverOtlp(program: string, args: string[]): Promise<DrawnRun[]> {
  const receiver = await createReceiver();
  try {
    await printedBy(program, [...args, receiver.url]);
    const runs = await receiver.runs();
    return treesIn(JSON.stringify(runs, (key, value) => (key === 'from_logs' ? undefined : value)));
  } finally {
    await receiver.close();
  }
}

const system = { role: 'system', content: 'Be brief.' };
const tea = { role: 'user', content: 'tea' };
const call = { id: 'call_1', type: 'function', function: { name: 'look_up', arguments: '{"word":"tea"}' } };
const says = (content: string) => ({ role: 'assistant', content, finish_reason: 'stop' });

/** The run of a span of the application with nested runs. */
const around = (name: string, ...below: DrawnRun[]): DrawnRun => ({ name, type: 'chain', below: inOrder(below) });

/** The metadata of a call of the model `small`. */
const small = (id: string, reason: string, usage: object, parameters: Record<string, unknown> = {}) => ({
  'gen_ai.operation.name': 'chat',
  response_id: id,
  'server.address': '127.0.0.1',
  'server.port': 8080,
  ls_provider: 'openai',
  ls_model_type: 'chat',
  ls_model_name: 'small',
  response_model: 'small-2026-01-01',
  finish_reasons: [reason],
  usage_metadata: usage,
  ls_invocation_params: { model: 'small', ...parameters },
});

function modelCall(
  inputs: readonly unknown[],
  output: { readonly finish_reason: string },
  [input_tokens, output_tokens]: readonly [number, number],
  metadata: (usage: object) => Record<string, unknown>,
): DrawnRun {
  const usage = { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens };
  return {
    name: 'chat small',
    type: 'llm',
    inputs: { messages: inputs },
    outputs: { messages: [output], usage_metadata: usage },
    metadata: metadata(usage),
  };
}

// Chat follows version 1.36, https://github.com/open-telemetry/semantic-conventions/blob/v1.36.0/docs/gen-ai/gen-ai-events.md,
// responses follow https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-events.md
describe.each([
  ['in the process', treesOf],
  ['over OTLP', treesOverOtlp],
])("OpenTelemetry's instrumentation of openai, which emits messages as log records, records %s", (_, readTrees) => {
  let trees: readonly DrawnRun[] = [];
  beforeAll(async () => {
    const model = await startLocalModel();
    trees = await readTrees('otel-genai-program.mjs', [`${model.url}/v1`]).finally(() => model.close());
  });
  const treeOf = (name: string): DrawnRun | undefined => trees.find((tree) => tree.name === name);

  test('a chat with tools', () => {
    const asked = { temperature: 0.5, max_tokens: 50, stop: ['END'] };
    const metadata = (reason: string) => (usage: object) => ({
      ...small('chatcmpl-local', reason, usage, asked),
      ls_temperature: 0.5,
      ls_max_tokens: 50,
      ls_stop: ['END'],
    });
    const calls = { role: 'assistant', tool_calls: [call] };
    const answer = { role: 'tool', tool_call_id: 'call_1', content: 'a drink' };
    expect(treeOf('chat with tools')).toEqual(
      around(
        'chat with tools',
        modelCall([system, tea], { ...calls, finish_reason: 'tool_calls' }, [3, 1], metadata('tool_calls')),
        modelCall([system, tea, calls, answer], says('The tools say: a drink'), [5, 5], metadata('stop')),
      ),
    );
  });

  test('a streamed chat', () => {
    const metadata = (usage: object) => small('chatcmpl-local', 'stop', usage);
    expect(treeOf('stream')).toEqual(around('stream', modelCall([tea], says('You said: tea'), [1, 3], metadata)));
  });

  test('responses, with a tool and streamed', () => {
    const metadata = (reason: string) => (usage: object) => small('resp_local', reason, usage);
    const plain = modelCall([system, tea], says('You said: tea'), [3, 3], metadata('stop'));
    const calls = {
      role: 'assistant',
      content: [{ type: 'reasoning', reasoning: 'Let me think.' }],
      tool_calls: [call],
      finish_reason: 'tool_call',
    };
    const withTool = modelCall([system, tea], calls, [3, 4], metadata('tool_call'));
    expect(treeOf('responses')).toEqual(around('responses', plain, withTool, plain));
  });

  test('embeddings without their texts', () => {
    const usage = { input_tokens: 2, total_tokens: 2 };
    expect(treeOf('embeddings')).toEqual(
      around('embeddings', {
        name: 'embeddings embed',
        type: 'embedding',
        outputs: { usage_metadata: usage },
        metadata: {
          'gen_ai.operation.name': 'embeddings',
          'server.address': '127.0.0.1',
          'server.port': 8080,
          ls_provider: 'openai',
          ls_model_type: 'embedding',
          ls_model_name: 'embed',
          response_model: 'embed',
          usage_metadata: usage,
          ls_invocation_params: { model: 'embed', encoding_formats: ['float'] },
        },
      }),
    );
  });

  test('a call that fails', () => {
    expect(treeOf('error')).toEqual(
      around('error', {
        name: 'chat fail-400',
        type: 'llm',
        inputs: { messages: [tea] },
        error: 'BadRequestError: 400 asked to fail with 400',
        metadata: {
          'gen_ai.operation.name': 'chat',
          'server.address': '127.0.0.1',
          'server.port': 8080,
          'error.type': 'BadRequestError',
          ls_provider: 'openai',
          ls_model_type: 'chat',
          ls_model_name: 'fail-400',
          ls_invocation_params: { model: 'fail-400' },
        },
      }),
    );
  });
});

// https://docs.langchain.com/langsmith/trace-with-opentelemetry
describe('langsmith in its OpenTelemetry mode', () => {
  test('has the same tree, types, payloads, tags, tokens and errors', async () => {
    const receiver = await createReceiver();
    onTestFinished(() => receiver.close());
    const trees = await treesOf('otel-langsmith-program.mjs', [], {
      LANGSMITH_TRACING: 'true',
      OTEL_ENABLED: 'true',
      LANGSMITH_ENDPOINT: receiver.url,
      LANGSMITH_API_KEY: 'key',
    });
    const usage = { input_tokens: 3, output_tokens: 4, total_tokens: 7, input_token_details: { cache_read: 2 } };
    expect(trees).toMatchObject([
      {
        name: 'answer',
        type: 'chain',
        inputs: { input: 'tea' },
        outputs: { outputs: 'tea' },
        tags: ['shop', 'tea'],
        metadata: { session_id: 's1', thread_id: 's1', plan: { kind: 'free' }, 'langsmith.trace.session_name': 'shop' },
        below: [
          { name: 'failing', type: 'tool', error: expect.stringMatching(/^TypeError: no such tool/) },
          {
            name: 'model',
            type: 'llm',
            inputs: { messages: [tea] },
            outputs: { role: 'assistant', content: 'tea', usage_metadata: usage },
            metadata: { ls_provider: 'openai', ls_model_name: 'small', usage_metadata: usage },
          },
          {
            name: 'search',
            type: 'retriever',
            inputs: { query: 'tea' },
            outputs: { outputs: [{ page_content: 'tea', type: 'Document', metadata: {} }] },
          },
        ],
      },
    ]);
    expect(JSON.stringify(trees)).not.toMatch(/langsmith\.(traceable|is_root|span\.kind)/);
    expect(await receiver.runs()).toEqual([]);
  });
});
