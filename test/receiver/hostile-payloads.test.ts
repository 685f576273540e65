import fc from 'fast-check';
import { expect, test } from 'vitest';
import { payloadFacts } from '#src/receiver/domain/summary.ts';
import { DEFAULT_SCOPE, MemoryStore, parsedQuery } from '#src/receiver.ts';
import { messagesOfInputs, messagesOfOutputs } from '#src/services/conversation.ts';
import { ANSWER } from '../exchanges/exchange.ts';
import { formats } from '../exchanges/table.ts';
import { forAllAsync } from '../support/campaign.ts';
import { post } from './conformance/support.ts';

const results = [{ type: 'tool_result', tool_use_id: 'a', content: { type: 'error-text', value: 'no' } }];
const blocks = [{ type: 'image', image: { format: 'png', source: { bytes: 'aGk=' } } }, { type: 'x' }, ...results];
const PAYLOADS: readonly object[] = [
  { messages: [{ lc: 1, type: 'constructor', id: ['AIMessage'], kwargs: { content: blocks } }] },
  { messages: [{ role: 'tool', tool_call_id: 'a', content: results }] },
  { messages: [{ role: 'assistant', content: [{ type: 'reasoning', summary: [{ text: 'a' }, { text: 'b' }] }] }] },
  { output: [{ type: 'function_call', call_id: 'a', name: 'f', arguments: '{}' }], usage: { input_tokens: 1 } },
  ...Object.values(formats).flatMap(({ body, response }) => [body, response(ANSWER, {})]),
];

/** Objects with the names of methods that JavaScript calls to convert an object, or of properties that it reads. */
const keys = fc.constantFrom('toString', 'valueOf', 'toJSON', 'constructor', '__proto__', 'then', 'length');
const hostile = fc
  .array(fc.tuple(keys, fc.jsonValue({ maxDepth: 1 })), { minLength: 1, maxLength: 3 })
  .map((entries) => Object.fromEntries(entries));

/** Payloads in which one value, with all that is in it, is hostile. */
const payloads = fc
  .tuple(fc.constantFrom(...PAYLOADS), fc.nat(25), hostile)
  .map(([payload, at, value]): Record<string, unknown> => {
    let left = at;
    return JSON.parse(JSON.stringify(payload, (_, one: unknown) => (left-- === 0 ? value : one)));
  });

test('a run whose payloads are null is listed without previews', async () => {
  const store = new MemoryStore();
  await store.apply(DEFAULT_SCOPE, [post(1, JSON.parse('{"inputs":null,"outputs":null}'))]);
  const { items } = await store.list(DEFAULT_SCOPE, parsedQuery({}));
  expect(items.map(({ inputs_preview, outputs_preview }) => [inputs_preview, outputs_preview])).toEqual([
    [undefined, undefined],
  ]);
});

test('the first of 60,000 results without ids belong to the first calls with their names', () => {
  const names = Array.from({ length: 60_000 }, (_, at) => `tool${at}`);
  const parts = names.map((name) => ({ functionCall: { name, args: {} } }));
  const results = names.toReversed().map((name) => ({ functionResponse: { name, response: { name } } }));
  const contents = [
    { role: 'model', parts },
    { role: 'user', parts: results },
  ];
  const { tool_results = [] } = payloadFacts({ run_type: 'llm', inputs: { contents } });
  expect(tool_results[0]).toEqual({ id: 'tool59999({})', text: '{"name":"tool59999"}' });
  expect(Buffer.byteLength(JSON.stringify(tool_results))).toBeLessThan(4_200);
});

test('a run is stored and listed, whatever its payloads contain', async () => {
  await forAllAsync(1_500, [payloads, payloads], async (inputs, outputs) => {
    const store = new MemoryStore();
    await store.apply(DEFAULT_SCOPE, [post(1, { run_type: 'llm', inputs, outputs }), post(2)]);
    const { items } = await store.list(DEFAULT_SCOPE, parsedQuery({}));
    expect(items).toHaveLength(2);
    for (const payload of [inputs, outputs]) {
      expect(() => [messagesOfInputs(payload), messagesOfOutputs(payload)]).not.toThrow();
    }
  });
});
