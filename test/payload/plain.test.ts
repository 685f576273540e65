import fc from 'fast-check';
import { expect, test } from 'vitest';
import { redact } from '../../src/payload/redact.ts';
import { serialize } from '../../src/payload/serialize.ts';
import { recordRuns } from '../../src/testing.ts';
import { LIMITS, makeRun } from '../run/memory-sink.ts';
import { collected } from '../support/garbage.ts';

const S = 'k9Xw27abQ4';
const keys = [
  ...[
    'a',
    'content',
    'max_tokens',
    'name',
    'value',
    'key',
    'headers',
    'rawHeaders',
    'toJSON',
    'constructor',
    '__proto__',
  ],
  ...[
    'password',
    'apiKey',
    'token',
    'tokens',
    'session',
    'signature',
    'thinking',
    'logprob',
    `https://a.b/?token=${S}`,
  ],
];
const pieces = [
  ...[
    '',
    ' ',
    'prose of several words',
    S,
    'Bearer ',
    'authorization',
    'cookie',
    'x-api-key',
    ': ',
    '\r\n',
    '"',
    '\\',
    '=',
    '@',
  ],
  ...[
    'https://a.b/',
    'postgres://',
    '?page=2',
    '&api_key=',
    '/login',
    '{"password":"',
    '{"a":1}',
    '[',
    '\ud800',
    '😀',
    'é',
    'data:',
  ],
  'A'.repeat(1_100),
];

const text = fc.array(fc.constantFrom(...pieces), { maxLength: 6 }).map((parts) => parts.join(''));
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    fc.constantFrom(null, true, 0, -0, 1.5, 1e21, Number.NaN, undefined, 7_000),
    text,
    text.map((inner) => JSON.stringify({ password: inner, url: inner })),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.array(text, { minLength: 2, maxLength: 2 }),
    fc
      .array(fc.tuple(fc.constantFrom(...keys), tie('value')), { maxLength: 4 })
      .map((entries) => Object.fromEntries(entries)),
  ),
}));

/** A pattern that matches nothing makes each value be searched, copied and masked one by one. */
const bySearch = redact({ patterns: [/(?!)/] });
const byCheck = redact();

test('a payload that is written at once is the same as one that is searched value by value', () => {
  fc.assert(
    fc.property(value, (payload) => {
      const expected = serialize(payload, { ...LIMITS, redaction: bySearch }, ['inputs']);
      expect(serialize(payload, { ...LIMITS, redaction: byCheck }, ['inputs'])).toBe(expected);
    }),
    { numRuns: 5_000 },
  );
});

test('a number after a secret name in a list of pairs is masked', () => {
  const pairs = [
    ['passcode', 123_456],
    ['lines', 123_456],
  ];
  const json = serialize(pairs, { ...LIMITS, redaction: byCheck }, ['inputs']);
  expect(json).toBe('[["passcode","[Redacted]"],["lines",123456]]');
});

test.each([
  { depth: 2, width: 3, nodes: 8, bytes: 60 },
  { depth: 3, width: 2, nodes: 20, bytes: 20 },
])('so it is at the limits %j', (limits) => {
  fc.assert(
    fc.property(value, (payload) => {
      const expected = serialize(payload, { ...limits, redaction: bySearch }, ['inputs']);
      expect(serialize(payload, { ...limits, redaction: byCheck }, ['inputs'])).toBe(expected);
    }),
    { numRuns: 2_000 },
  );
});

test('an object with a prototype of the application, or an iterator, is not taken for plain data', async () => {
  const hidden = Object.create({ toJSON: () => ({ password: S }) });
  const stream = new ReadableStream();
  const shown = serialize([hidden, stream.values(), [].values(), new Map().keys()], { ...LIMITS, redaction: byCheck });
  expect(shown).toBe('[{"password":"[Redacted]"},"[AsyncIterator]","[Iterator]","[Iterator]"]');
});

test('a cycle costs no more than the limit of depth', () => {
  const root: { name: string; children: unknown[] } = { name: 'root', children: [] };
  for (let index = 0; index < 5_000; index++) root.children.push({ index, parent: root });
  const startMs = performance.now();
  const json = serialize(root, { ...LIMITS, redaction: byCheck });
  expect(performance.now() - startMs).toBeLessThan(2_000);
  expect(JSON.parse(json).children[4_999]).toEqual({ index: 4_999, parent: '[Circular]' });
});

test('chunks are recorded as they were when they arrived', () => {
  const { run, sink } = makeRun({}, { payload: { ...LIMITS, redaction: byCheck } });
  const list = run.chunkList();
  const object = { text: 'b', list: [1] };
  for (const chunk of ['a', object, 'c', 'd', 5, `https://a.b/?api_key=${S}`, null]) list?.add(chunk);
  object.list.push(2);
  run.keepOutputs(`{"outputs":${list?.json()}}`);
  run.end();
  expect(JSON.parse(sink.ended[0]?.outputs ?? '').outputs).toEqual([
    ...['a', { text: 'b', list: [1] }, 'c', 'd', 5],
    ...['https://a.b/?api_key=[Redacted]', null],
  ]);
});

test('a chunk of text is masked by its path, as every other chunk', () => {
  const recorder = recordRuns({ redact: redact({ paths: ['outputs.outputs[*]'] }) });
  try {
    const { capture } = recorder.exporter as unknown as { capture: Parameters<typeof makeRun>[1] };
    const { run } = makeRun({}, capture);
    const list = run.chunkList();
    list?.add('a');
    list?.add({ b: 1 });
    expect(list?.json()).toBe('["[Redacted]","[Redacted]"]');
  } finally {
    recorder.stop();
  }
});

test('a getter may record another payload meanwhile', () => {
  const rules = { ...LIMITS, redaction: byCheck };
  const rows = (count: number) => Array.from({ length: count }, (_, at) => ({ at, below: [{ at }] }));
  const inner: string[] = [];
  const before = rows(3);
  const after = rows(5);
  const outer = {
    before,
    get number() {
      inner.push(serialize(rows(9), rules, ['inputs']));
      return 1;
    },
    after,
  };
  for (let round = 0; round < 2; round++) {
    expect(serialize(outer, rules, ['inputs'])).toBe(JSON.stringify({ before, number: 1, after }));
  }
  for (const json of inner) expect(json).toBe(JSON.stringify(rows(9)));
});

test('a recorded payload is not kept in memory', async () => {
  const dropped = (() => {
    const below = { leaf: 1 };
    serialize({ rows: [{ a: { b: [below] } }, below, {}] }, { ...LIMITS, redaction: byCheck }, ['inputs']);
    return new WeakRef(below);
  })();
  await collected(dropped);
  expect(dropped.deref()).toBeUndefined();
});
