import fc from 'fast-check';
import { describe, expect, it, test, vi } from 'vitest';
import { recordFetch } from '#src/integrations/fetch/record-fetch.ts';
import type { RunOutline } from '#src/receiver/domain/run-view.ts';
import { type DerivedTool, derivedTools } from '#src/receiver/domain/trace/derived-tools.ts';
import { DEFAULT_SCOPE, MemoryStore, type RunFields } from '#src/receiver.ts';
import { idOf, run } from '../browser/runs.ts';
import { ANSWER, type Exchange, exchangeOf, type Format } from '../exchanges/exchange.ts';
import { serve } from '../exchanges/run.ts';
import { formats } from '../exchanges/table.ts';
import { record } from '../instrument/recorder.ts';
import { onlyRun } from '../integrations/local-openai.ts';
import { cases } from '../support/campaign.ts';

async function recorded(format: Format, body: object, answer = ANSWER): Promise<Pick<RunFields, 'inputs' | 'outputs'>> {
  const exchange: Exchange = { ...exchangeOf(format, { title: '' }), response: format.response(answer, format.counts) };
  if (format.provider === 'amazon_bedrock')
    return { inputs: { ...body }, outputs: { ...(exchange.response as object) } };
  await serve(exchange, false);
  const stop = recordFetch();
  const recorder = record();
  await (await fetch(format.url, { method: 'POST', body: JSON.stringify(body) })).text();
  const { inputs = {}, outputs = {} } = onlyRun(recorder.runs);
  stop();
  vi.unstubAllGlobals();
  recorder.stop();
  return { inputs, outputs };
}

/** Returns the tools between two model calls that start after 0 and 300 ms, and take 100 ms. */
async function toolsBetween(first: RunFields, second: RunFields): Promise<DerivedTool[]> {
  const store = new MemoryStore();
  const call = { parent: 1, ms: 100, run_type: 'llm' };
  await store.apply(DEFAULT_SCOPE, [
    run(1, { at: 0, ms: 500 }),
    run(2, { at: 0, ...call, ...first }),
    run(3, { at: 300, ...call, ...second }),
  ]);
  return derivedTools((await store.outline(DEFAULT_SCOPE, idOf(1))).map((text) => JSON.parse(text)));
}

const BETWEEN = { parent_run_id: idOf(1), after_run_id: idOf(2), before_run_id: idOf(3), next_run_id: idOf(3) };
const TIMES = { start_time: '2026-11-20T07:00:00.100000Z', end_time: '2026-11-20T07:00:00.300000Z' };

describe('the messages of two model calls tell of the tool between them', () => {
  const find = { thought: [], text: [], calls: [{ id: 'call_1', name: 'find', words: ['1'] }] };

  test.each(Object.entries(formats))('in the format of %s', async (name, format) => {
    // Ollama has no ids, so the arguments of the request must be those of the answer.
    const body = JSON.parse(JSON.stringify(format.body).replace('"q":1', '"q":"1"'));
    expect(await toolsBetween(await recorded(format, body, find), await recorded(format, body))).toEqual([
      {
        ...{ id: name === 'Ollama' ? 'find({"q":"1"})' : 'call_1', name: 'find', arguments: '{"q":"1"}' },
        ...{ result: '{"found":2}', is_error: false, ...BETWEEN, ...TIMES },
      },
    ]);
  });

  const called = { content: '', tool_calls: [{ id: 'c', name: 'find', args: { q: 1 } }] };
  const gemini = { role: 'model', parts: [{ functionCall: { name: 'find', args: { q: 1 } } }] };
  const ofSdk = { type: 'tool-result', toolCallId: 'c', output: { type: 'error-text', value: 'No' } };
  const ofGemini = { functionResponse: { name: 'find', response: { error: 'No' } } };
  test.each<[string, string, object, object?]>([
    ['Anthropic', 'user', { content: [{ type: 'tool_result', tool_use_id: 'c', is_error: true, content: 'No' }] }],
    ['Bedrock', 'user', { content: [{ toolResult: { toolUseId: 'c', status: 'error', content: [{ text: 'No' }] } }] }],
    ['LangChain', 'tool', { type: 'tool', tool_call_id: 'c', status: 'error', content: 'No' }],
    ['the AI SDK', 'tool', { content: [ofSdk] }],
    ['Gemini, which has no ids', 'user', { parts: [ofGemini] }, gemini],
  ])('and that it failed, in the format of %s', async (_, role, result, answer = called) => {
    const messages = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', ...answer },
      { role, ...result },
    ];
    const tools = await toolsBetween({ outputs: { ...answer } }, { inputs: { messages } });
    expect(tools).toMatchObject([{ name: 'find', is_error: true, result: expect.stringContaining('No') }]);
  });

  it('in at most 4 KiB of JSON with texts of 200 characters', async () => {
    const calls = Array.from({ length: 200 }, (_, at) => ({ id: `c${at}`, name: 'find', args: 'ü'.repeat(500) }));
    const results = calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'ü'.repeat(500) }));
    const store = new MemoryStore();
    const payloads = { inputs: { messages: results }, outputs: { tool_calls: calls } };
    await store.apply(DEFAULT_SCOPE, [run(1, { run_type: 'llm', ...payloads })]);
    const [{ tools = {} }] = (await store.outline(DEFAULT_SCOPE, idOf(1))).map((text) => JSON.parse(text)) as [
      RunOutline,
    ];
    for (const list of [tools.calls ?? [], tools.results ?? []]) {
      expect(list.length).toBeGreaterThan(5);
      expect(Buffer.byteLength(JSON.stringify(list))).toBeLessThanOrEqual(4_098);
    }
    expect(tools.calls?.[0]?.arguments).toBe(`${'ü'.repeat(200)}…`);
  });
});

describe('a tool', () => {
  /** Returns an outline of a run that starts in a second and takes one. */
  const at = (second: number, fields: Partial<RunOutline> = {}): RunOutline => ({
    ...{ id: `${second}`, parent_run_id: '0', name: 'call', run_type: 'llm', status: 'success' },
    start_time: `2026-11-20T07:00:${`${second}`.padStart(2, '0')}.000000Z`,
    end_time: `2026-11-20T07:00:${`${second + 1}`.padStart(2, '0')}.000000Z`,
    ...fields,
  });
  const asks = (...ids: string[]) => ({ tools: { calls: ids.map((id) => ({ id, name: 'find', arguments: '{}' })) } });
  const gets = (...ids: string[]) => ({ tools: { results: ids.map((id) => ({ id, text: 'found' })) } });
  const pairsOf = (...runs: RunOutline[]): string[] =>
    derivedTools([at(0, { run_type: 'chain', name: 'root' }), ...runs]).map(
      ({ id, after_run_id, before_run_id, parent_run_id }) =>
        `${id}: ${after_run_id} → ${before_run_id} in ${parent_run_id}`,
    );
  const step = { run_type: 'chain', name: 'step' };
  const tool = { run_type: 'tool', name: 'find' };

  test.each<[string, RunOutline[], string[]]>([
    ['that no later request shows is not derived', [at(1, asks('a')), at(3, gets('b'))], []],
    ['has its result in a later request, after others', [at(1, asks('a')), at(3), at(5, gets('a'))], ['a: 1 → 5 in 0']],
    ['is derived once', [at(1, asks('a')), at(3, gets('a')), at(4, gets('a'))], ['a: 1 → 3 in 0']],
    [
      'whose id repeats belongs to the call before',
      [at(1, asks('a')), at(3, { tools: { ...gets('a').tools, ...asks('a').tools } }), at(5, gets('a'))],
      ['a: 1 → 3 in 0', 'a: 3 → 5 in 0'],
    ],
    [
      'whose id repeats belongs to the call below the same run',
      [
        ...[at(1, { id: 'x', ...step }), at(1, { id: 'y', ...step })],
        ...[at(2, { parent_run_id: 'x', ...asks('a') }), at(3, { parent_run_id: 'y', ...asks('a') })],
        ...[at(5, { parent_run_id: 'x', ...gets('a') }), at(6, { parent_run_id: 'y', ...gets('a') })],
      ],
      ['a: 2 → 5 in x', 'a: 3 → 6 in y'],
    ],
    [
      'is below the nearest run above both calls',
      [
        ...[at(1, { id: 'x', ...step }), at(4, { id: 'y', ...step })],
        ...[at(2, { parent_run_id: 'x', ...asks('a') }), at(5, { parent_run_id: 'y', ...gets('a') })],
      ],
      ['a: 2 → 5 in 0'],
    ],
    [
      'is left out if a run has its id',
      [at(1, asks('a')), at(2, { tool_call_id: 'a', ...step }), at(3, gets('a'))],
      [],
    ],
    ['is left out if a run has its name', [at(1, asks('a')), at(2, tool), at(3, gets('a'))], []],
    ['is derived if a run has its name before', [at(1, tool), at(2, asks('a')), at(3, gets('a'))], ['a: 2 → 3 in 0']],
    [
      'is derived if a run with its name is another call',
      [at(1, asks('a', 'b')), at(2, { ...tool, tool_call_id: 'b' }), at(3, gets('a', 'b'))],
      ['a: 1 → 3 in 0'],
    ],
    [
      'is derived once if several runs record the calls',
      [
        ...[at(1, asks('a')), at(2, { same_call_as: '1', parent_run_id: '1', ...asks('z({})') })],
        ...[at(4), at(5, { same_call_as: '4', parent_run_id: '4', ...gets('a') })],
      ],
      ['a: 1 → 4 in 0'],
    ],
  ])('%s', (_, runs, pairs) => expect(pairsOf(...runs)).toEqual(pairs));

  test('ran after the start of the call if its request was sent before the answer was read', () => {
    const [derived] = derivedTools([
      at(1, { end_time: '2026-11-20T07:01:00.000000Z', ...asks('a') }),
      at(3, gets('a')),
    ]);
    expect(derived).toMatchObject({ start_time: at(1).start_time, end_time: at(3).start_time });
  });

  test('is derived from equal ids only, once for each result, and never beside a recorded run', () => {
    const ids = fc.subarray(['a', 'b', 'c']);
    const parent_run_id = fc.constantFrom('0', '1', '2', '3', 'missing');
    const model = fc.record({ parent_run_id, called: ids, got: ids }).map(({ called, got, ...fields }) => ({
      ...{ ...fields, tools: { calls: asks(...called).tools.calls, results: gets(...got).tools.results } },
    }));
    const recordedTool = fc.record({ parent_run_id, tool_call_id: fc.constantFrom('a', 'b', 'c') });
    const anyRun = fc.oneof(
      { weight: 4, arbitrary: model },
      recordedTool.map((fields) => ({ ...tool, ...fields })),
    );
    const property = fc.property(fc.array(anyRun, { maxLength: 12 }), (fields) => {
      const runs = fields.map((one, second) => at(second, one as Partial<RunOutline>));
      const byId = new Map(runs.map((one) => [one.id, one]));
      const seen = new Set<string>();
      for (const { id, after_run_id: after, before_run_id: before } of derivedTools(runs)) {
        expect(byId.get(after)?.tools?.calls).toContainEqual(expect.objectContaining({ id }));
        expect(byId.get(before)?.tools?.results).toContainEqual(expect.objectContaining({ id }));
        expect(Number(after)).toBeLessThan(Number(before));
        expect(runs.filter(({ tool_call_id }) => tool_call_id === id)).toEqual([]);
        expect(seen).not.toContain(`${id} ${before}`);
        seen.add(`${id} ${before}`);
      }
    });
    fc.assert(property, { numRuns: cases(1_000) });
  });
});
