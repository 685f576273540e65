import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type CallRecord, isRepeated, requestKey, sameCalls } from '../../src/run/same-call.ts';

const span = 'com.anthropic.sdk.typescript';

/** Creates a model call that lasts from `startUs` to `endUs`. */
function call(id: string, source: string | undefined, startUs: number, endUs: number, rest: Partial<CallRecord> = {}) {
  const facts = { parentId: undefined, responseId: undefined, request: undefined };
  return { type: 'llm', name: 'chat', ...facts, id, source, startUs, endUs, ...rest } satisfies CallRecord;
}

const pairs = (...runs: CallRecord[]) => Object.fromEntries(sameCalls(runs));

describe('two runs record the same call', () => {
  it('if the service gave both the same response id, even in different formats and after a clock skew', () => {
    const rest = { responseId: 'msg_1' };
    expect(pairs(call('a', 'langchain', 0, 9, rest), call('b', span, 1, 8, rest))).toEqual({ b: 'a' });
    expect(pairs(call('a', span, 5, 9, rest), call('b', 'claude', 1, 8, { ...rest, parentId: 'a' }))).toEqual({
      b: 'a',
    });
  });

  it('if one is below the other, also below the span of a request between them', () => {
    const http = call('http', 'undici', 1, 8, { type: 'chain', parentId: 'a' });
    const below = call('b', 'claude', 2, 7, { parentId: 'http' });
    const deeper = call('c', 'claude', 3, 6, { parentId: 'b' });
    expect(pairs(call('a', span, 0, 9), http, below, deeper)).toEqual({ b: 'a', c: 'a' });
  });

  it('if a function of the application that is marked as a model call makes the call', () => {
    expect(pairs(call('a', undefined, 0, 9), call('b', 'fetch', 1, 8, { parentId: 'a' }))).toEqual({ b: 'a' });
  });

  it('if the requests are equal, and only the outer run contains the time of the inner run', () => {
    const rest = { request: 'Hi' };
    expect(pairs(call('a', 'langfuse', 0, 9, rest), call('b', 'fetch', 1, 8, rest))).toEqual({ b: 'a' });
    const attempts = [call('b', 'fetch', 1, 3, rest), call('c', 'fetch', 4, 8, rest)];
    expect(pairs(call('a', 'langfuse', 0, 9, rest), ...attempts)).toEqual({ b: 'a', c: 'a' });
  });
});

describe('two runs record two calls', () => {
  it.each<[string, CallRecord[]]>([
    ['that overlap and have the same model', [call('a', 'langfuse', 0, 9), call('b', 'fetch', 1, 8)]],
    ['of one source, one below the other', [call('a', 'fetch', 0, 9), call('b', 'fetch', 1, 8, { parentId: 'a' })]],
    ['of different types', [call('a', 'fetch', 0, 9, { type: 'embedding' }), call('b', span, 1, 8, { parentId: 'a' })]],
    [
      'of tools with different names',
      [
        call('a', 'langchain', 0, 9, { type: 'tool', name: 'search' }),
        call('b', undefined, 1, 8, { type: 'tool', name: 'open page', parentId: 'a' }),
      ],
    ],
    [
      'with a tool between them',
      [
        call('a', 'wrapModel', 0, 9),
        call('tool', 'wrapModel', 1, 8, { type: 'tool', parentId: 'a' }),
        call('b', 'fetch', 2, 7, { parentId: 'tool' }),
      ],
    ],
    [
      'with a function of the application between them',
      [
        call('a', 'wrapModel', 0, 9),
        call('rewrite', undefined, 1, 8, { type: 'chain', parentId: 'a' }),
        call('b', 'fetch', 2, 7, { parentId: 'rewrite' }),
      ],
    ],
    [
      'with equal requests, if each has two possible partners',
      [
        call('a', 'langfuse', 0, 9, { request: 'Hi' }),
        call('b', 'langfuse', 0, 9, { request: 'Hi' }),
        call('c', 'fetch', 1, 8, { request: 'Hi' }),
        call('d', 'fetch', 1, 8, { request: 'Hi' }),
      ],
    ],
    [
      'with equal requests that only overlap',
      [call('a', 'langfuse', 0, 7, { request: 'Hi' }), call('b', 'fetch', 1, 8, { request: 'Hi' })],
    ],
    [
      'with different requests',
      [call('a', 'langfuse', 0, 9, { request: 'Hi' }), call('b', 'fetch', 1, 8, { request: 'Bye' })],
    ],
    [
      'if the inner one has not ended',
      [
        call('a', 'langfuse', 0, 9, { request: 'Hi' }),
        { ...call('b', 'fetch', 1, 8, { request: 'Hi' }), endUs: undefined },
      ],
    ],
  ])('%s', (_, runs) => {
    expect(pairs(...runs)).toEqual({});
  });
});

it('each of 200 parallel calls that two sources record keeps its own partner, in any order of the runs', () => {
  const agents = fc.array(
    fc.record({ startUs: fc.nat(100), evidence: fc.constantFrom('response', 'request', 'parent', 'parent and text') }),
    { minLength: 200, maxLength: 200 },
  );
  const trace = agents.chain((list) => {
    const runs = list.flatMap(({ startUs, evidence }, at) => {
      const own = evidence === 'request' ? `question ${at}` : evidence === 'parent and text' ? 'Hi' : undefined;
      const shared = { request: own, responseId: evidence === 'response' ? `chatcmpl-${at}` : undefined };
      const parentId = evidence.startsWith('parent') ? `outer ${at}` : undefined;
      return [
        call(`outer ${at}`, 'langfuse', startUs, startUs + 50, shared),
        call(`inner ${at}`, 'fetch', startUs + 1, startUs + 49, { ...shared, parentId }),
      ];
    });
    return fc.shuffledSubarray(runs, { minLength: runs.length });
  });
  const expected = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`inner ${at}`, `outer ${at}`]));
  fc.assert(
    fc.property(trace, (runs) => {
      expect(pairs(...runs)).toEqual(expected);
    }),
    { numRuns: 20 },
  );
});

it('20,000 calls in a trace are compared in a moment, however they are nested', () => {
  const source = (at: number) => (at % 2 === 0 ? 'langfuse' : 'fetch');
  const below = Array.from({ length: 20_000 }, (_, at) =>
    call(`${at}`, source(at), at, 100_000 - at, { parentId: `${at - 1}` }),
  );
  const within = Array.from({ length: 20_000 }, (_, at) =>
    call(`${at}`, source(at), at, 100_000 - at, { request: `question ${Math.floor(at / 200)}` }),
  );
  const startMs = performance.now();
  const outers = sameCalls(below);
  // A call has at most 17 records, so 20,000 nested records are 1,177 calls.
  expect(below.filter(({ id }) => !isRepeated(id, outers, () => true)).length).toBe(1_177);
  sameCalls(within);
  expect(performance.now() - startMs).toBeLessThan(2_000);
});

it('the usage of attempts counts only if no outer run has usage', () => {
  const outers = new Map([
    ['b', 'a'],
    ['c', 'b'],
  ]);
  expect(['a', 'b', 'c'].filter((id) => !isRepeated(id, outers, (one) => one !== 'a'))).toEqual(['a', 'b']);
  expect(['a', 'b', 'c'].filter((id) => !isRepeated(id, outers, () => true))).toEqual(['a']);
});

describe('the fingerprint of a request', () => {
  const texts = ['Be brief.', 'Is it raining?'];
  it.each<[string, unknown]>([
    [
      'chat messages',
      {
        messages: [
          { role: 'system', content: texts[0] },
          { role: 'user', content: texts[1] },
        ],
      },
    ],
    ['content parts', { messages: texts.map((text) => ({ role: 'user', content: [{ type: 'text', text }] })) }],
    ["Anthropic's system prompt", { messages: [{ role: 'user', content: texts[1] }], system: texts[0] }],
    ["Gemini's contents", { contents: texts.map((text) => ({ parts: [{ text: ` ${text}` }] })) }],
    ['a response', { input: texts[1], instructions: texts[0] }],
  ])('is the same for %s', (_, inputs) => {
    expect(requestKey(inputs)).toBe(requestKey({ values: texts }));
  });

  it('differs between texts, and is missing without a text', () => {
    const keys = ['', 'a', 'b', 'ab', 'a b'].map((content) => requestKey({ messages: [{ content }] }));
    expect(new Set(keys).size).toBe(5);
    expect([undefined, {}, { messages: [] }, { temperature: 1 }, 7].map(requestKey)).toEqual(Array(5).fill(undefined));
  });
});
