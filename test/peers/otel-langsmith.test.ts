// The spans of langsmith in its OpenTelemetry mode: https://docs.langchain.com/langsmith/trace-with-opentelemetry
import { expect, test } from 'vitest';
import type { RunRecord } from '#src/run/record.ts';
import { startReceiver } from '../support/receiver.ts';
import { drawn, printedBy } from './otel-runs.ts';

test('langsmith in its OpenTelemetry mode has the same tree, types, payloads, tags, tokens and errors', async () => {
  const receiver = await startReceiver();
  const runs = await printedBy<RunRecord[]>('otel-langsmith-program.mjs', [], process.execPath, {
    LANGSMITH_TRACING: 'true',
    OTEL_ENABLED: 'true',
    LANGSMITH_ENDPOINT: receiver.url,
    LANGSMITH_API_KEY: 'key',
  });
  const trees = drawn(runs);
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
          inputs: { messages: [{ role: 'user', content: 'tea' }] },
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
