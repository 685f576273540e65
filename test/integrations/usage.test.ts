// Properties of token counts and costs, however they are recorded. Token details have the names used by LangSmith's
// wrappers (langsmith 0.10.5), so that its prices apply. The table of exchanges has the counts of each service.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { startRun, type UsageMetadata } from '#src/index.ts';
import type { Attributes } from '#src/otel/conventions/values.ts';
import { metadataOfUsage } from '#src/payload/usage.ts';
import { aiSdkUsage as usageOf } from '#src/services/ai-sdk/usage.ts';
import { messageCall } from '#src/services/anthropic/calls.ts';
import { openaiCalls } from '#src/services/openai/calls.ts';
import { record } from '../instrument/recorder.ts';
import { mapped } from '../otel/mapped.ts';
import { forAll } from '../support/campaign.ts';

const openai = (usage: object, service_tier?: string) =>
  openaiCalls.chat.read({ choices: [], usage, service_tier }).usage;
const anthropic = (usage: object) => messageCall.read({ content: [], usage }).usage;

const counts = (input_tokens: number, output_tokens: number, total_tokens = input_tokens + output_tokens) => ({
  input_tokens,
  output_tokens,
  total_tokens,
});
const message = { input_tokens: 7, output_tokens: 1, cache_read_input_tokens: 4 };

/** The metadata of a run whose application reports this usage. */
function metadataWith(usage: UsageMetadata) {
  const recorder = record();
  const run = startRun({ name: 'call', runType: 'llm' });
  run.set({ usage });
  run.end();
  return recorder.runs[0]?.extra?.metadata;
}

/** The usage of one call as each way of recording reports it: an application, three SDKs, and spans. */
function everyUsage(input: number, output: number, total: number | undefined, read: number, written: number) {
  const ofSpan = (attributes: Attributes) => mapped(attributes).metadata.usage_metadata;
  return {
    application: metadataWith({
      input_tokens: input,
      output_tokens: output,
      ...(total !== undefined && { total_tokens: total }),
      input_token_details: { cache_read: read, cache_creation: written },
    })?.usage_metadata,
    openai: openai({
      prompt_tokens: input,
      completion_tokens: output,
      total_tokens: total,
      prompt_tokens_details: { cached_tokens: read, cache_write_tokens: written },
    }),
    aiSdk: usageOf(
      {
        inputTokens: { total: input, cacheRead: read, cacheWrite: written },
        outputTokens: { total: output },
        totalTokens: total,
      },
      {},
    ),
    genAi: ofSpan({
      'gen_ai.operation.name': 'chat',
      'gen_ai.usage.input_tokens': input,
      'gen_ai.usage.output_tokens': output,
      'gen_ai.usage.total_tokens': total,
      'gen_ai.usage.cache_read.input_tokens': read,
      'gen_ai.usage.cache_write.input_tokens': written,
    }),
    openInference: ofSpan({
      'openinference.span.kind': 'LLM',
      'llm.token_count.prompt': input,
      'llm.token_count.completion': output,
      'llm.token_count.total': total,
      'llm.token_count.prompt_details.cache_read': read,
      'llm.token_count.prompt_details.cache_write': written,
    }),
    aiSdkSpan: ofSpan({
      'ai.operationId': 'ai.generateText.doGenerate',
      'ai.usage.inputTokens': input,
      'ai.usage.outputTokens': output,
      'ai.usage.totalTokens': total,
      'ai.usage.inputTokenDetails.cacheReadTokens': read,
      'ai.usage.inputTokenDetails.cacheWriteTokens': written,
    }),
  };
}

test.each<[string, Parameters<typeof everyUsage>, Parameters<typeof counts>]>([
  ['exclude cached tokens', [12, 5, undefined, 100, 0], [112, 5, 117]],
  ['exclude cached tokens, as does the total', [12, 5, 17, 100, 0], [112, 5, 117]],
  ['exclude cached tokens, and the total includes them', [200, 5, 305, 100, 0], [300, 5, 305]],
  ['exclude tokens that are read from and written to a cache', [12, 5, 17, 8, 7], [27, 5, 32]],
  ['include cached tokens', [12, 5, 17, 8, 4], [12, 5, 17]],
  ['include cached tokens, and the total is another number', [12, 5, 10, 8, 4], [12, 5, 10]],
])('usage whose input tokens %s is the same however it is recorded', (_, given, expected) => {
  const details = { cache_read: given[3], cache_creation: given[4] };
  for (const [way, usage] of Object.entries(everyUsage(...given)))
    expect([way, usage]).toEqual([way, { ...counts(...expected), input_token_details: details }]);
});

test('any usage adds up or says that it does not, invents no count, and is the same however it is recorded', () => {
  const tokens = fc.oneof(fc.nat(20), fc.nat(1_000_000));
  const nothing = fc.constant(undefined);
  forAll(100, [tokens, tokens, fc.oneof(nothing, tokens), tokens, tokens], (input, output, other, read, written) => {
    for (const total of [other, input + output, input + output + read + written]) {
      const { application, ...others } = everyUsage(input, output, total, read, written);
      for (const usage of Object.values(others)) expect(usage).toEqual(application);
      const usage = application as Required<UsageMetadata>;
      const isSum = usage.input_tokens + usage.output_tokens === usage.total_tokens;
      expect('usage_check' in metadataOfUsage(usage)).toBe(!isSum);
      if (!isSum) expect(usage).toMatchObject(counts(input, output, total));
      expect([input, input + read + written]).toContain(usage.input_tokens);
      expect(usage.output_tokens).toBe(output);
      expect(usage.input_token_details).toEqual({ cache_read: read, cache_creation: written });
    }
  });
});

test('the running totals of a stream never shrink, and an empty text replaces none', () => {
  const usage = fc.record({ input_tokens: fc.nat(9), output_tokens: fc.nat(9) }, { requiredKeys: [] });
  forAll(100, [fc.array(usage, { minLength: 1 })], (usages) => {
    const fold = messageCall.fold?.();
    fold?.add(
      { type: 'message_start', message: { content: [], usage: { ...usages[0], service_tier: 'priority' } } },
      false,
    );
    for (const later of [...usages, { service_tier: '' }])
      fold?.add({ type: 'message_delta', delta: {}, usage: later }, false);
    const most = (key: 'input_tokens' | 'output_tokens') => {
      const known = usages.map((one) => one[key]).filter((count) => count !== undefined);
      return known.length === 0 ? undefined : Math.max(...known);
    };
    const { usage: { input_tokens, output_tokens } = {}, outputs } = messageCall.read(fold?.result());
    expect(outputs.usage).toMatchObject({ service_tier: 'priority' });
    expect([input_tokens, output_tokens]).toEqual([most('input_tokens'), most('output_tokens')]);
  });
});

const alone = { input_tokens: 3, total_cost: 0.5 };

test.each([1_000_000_001, 1e21, -1, 1.5])('the token count %s of a service is refused', (invalid) => {
  expect(openai({ prompt_tokens: 3, completion_tokens: invalid, cost: 0.5 })).toEqual(alone);
  expect(openai({ prompt_tokens: invalid, completion_tokens: invalid })).toBeUndefined();
  expect(anthropic({ ...message, cache_read_input_tokens: invalid })).toEqual(counts(7, 1));
});

test.each([1_000_000_001, 1e21, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])(
  'the token count %s of an application is refused',
  (invalid) => {
    const usage = { ...alone, output_tokens: invalid, output_token_details: { audio: invalid } };
    expect(metadataWith(usage)?.usage_metadata).toEqual(alone);
  },
);

test.each([-0.5, Number.NaN, Number.POSITIVE_INFINITY])('the cost %s is refused', (cost) => {
  expect(openai({ prompt_tokens: 3, completion_tokens: 1, cost })).toEqual(counts(3, 1));
});

test.each([
  [{}, { usage_metadata: counts(3, 5) }],
  [{ total_tokens: 9 }, { usage_metadata: counts(3, 5, 9), usage_check: '3 input + 5 output tokens, but 9 in total' }],
])('usage of an application with %j gets a total, or a text if the total differs', (total, expected) => {
  expect(metadataWith({ input_tokens: 3, output_tokens: 5, ...total })).toMatchObject(expected);
});
