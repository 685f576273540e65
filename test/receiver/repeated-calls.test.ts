import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type ComparedRun,
  callEvidenceOf,
  comparedCalls,
  repeatedCallsIn,
} from '#src/receiver/domain/trace/repeated-calls.ts';
import { forAll } from '../support/campaign.ts';

const MARKS = {
  '<': 'parentId',
  '#': 'request',
  '@': 'responseId',
  '=': 'sameCall',
  '~': 'model',
  '!': 'status',
} as const;

/**
 * Creates a run. `a x 0-9` is a model call with the id `a` from the source `x` that lasts from 0 to 9 ms. Further words are the
 * parent `<p`, the request `#q`, the response id `@r`, the marked run `=b`, the model `~m`, the status `!error` and the type.
 */
function run(text: string): ComparedRun {
  const [id = '', source, times = '', ...words] = text.split(' ');
  const [startUs = 0, endUs] = times.split('-').map((time) => (time === '' ? undefined : 1_000 * Number(time)));
  const facts = { parentId: 'root', responseId: undefined, request: undefined, sameCall: undefined, model: undefined };
  const run = { type: 'llm', name: 'chat', status: 'success', ...facts, id, source, startUs, endUs };
  for (const word of words) {
    const key = MARKS[word[0] as keyof typeof MARKS];
    Object.assign(run, key === undefined ? { type: word } : { [key]: word.slice(1) || undefined });
  }
  return run as ComparedRun;
}

/** Maps each record that names another one to it. */
const sameCalls = (runs: readonly ComparedRun[]) =>
  new Map(comparedCalls(runs).flatMap(({ id, same }) => (same === undefined ? [] : [[id, same.id]])));

/** Returns the pairs of a later and an earlier record, for example `b>a`, whatever the order of the runs. */
function pairs(...texts: string[]): string {
  const of = (runs: ComparedRun[]) => [...sameCalls(runs)].map(([id, named]) => `${id}>${named}`);
  const found = of(texts.map(run)).sort().join(' ');
  expect(of(texts.map(run).reverse()).sort().join(' ')).toBe(found);
  return found;
}

test.each<[string, string, ...string[]]>([
  ['equal response ids', 'a>b', 'a x 0-9 @1', 'b y 1-8 @1'],
  ['an equal request below it', 'a>b', 'a x 0-9 #q', 'b y 1-8 <a #q'],
  ['an equal request far below it', 'a>b', 'a x 0-9 #q', 'http z 1-8 <a chain', 'b y 2-7 <http #q'],
  ['an equal request beside it', 'b>a', 'a x 0-7 #q', 'b y 1-9 #q'],
  ['an equal request, if only one has an id', 'a>b', 'a x 0-9 #q', 'b y 1-8 <a #q @1'],
  ['an equal request and the same end', 'a>b', 'a x 0-9 #q', 'b y 0-9 <a #q'],
  ['an equal request while it is open', 'a>b', 'a x 0- #q', 'b y 1-8 <a #q'],
  ['the only attempt that succeeded', 'a>c', 'a x 0-9 #q', 'b y 1-3 <a #q !error', 'c y 4-8 <a #q'],
  ['each of three sources', 'a>b b>c', 'a x 0-9 #q', 'b y 1-8 <a #q', 'c z 2-7 <b #q'],
  ['a service that has recorded its id twice', 'a>b', 'a x 0-9 @1', 'b y 1-8 <a @1', 'c y 2-7 <b @1'],
  ['models of which one has a version', 'a>b', 'a x 0-9 #q ~openai/gpt-4o', 'b y 1-8 <a #q ~GPT-4o-2024-08-06'],
  ['a tool with the same arguments', 'a>b', 'a x 0-9 #q tool', 'b y 1-8 <a #q tool'],
  ['a mark, whatever the sources and the times are', 'b>a', 'a x 0-1', 'b x 5-9 =a'],
  ['a mark of the one that ended first', 'b>a', 'a x 0-9 #q', 'b y 1-8 <a #q =a'],
  ['a mark that is against the order of the ends', 'a>c b>a', 'a x 0-9 #q', 'b y 1-7 <a #q =a', 'c z 0-8 #q'],
])('two records are of one call by %s', (_, expected, ...runs) => {
  expect(pairs(...runs)).toBe(expected);
});

test.each<[string, ...string[]]>([
  ['only the same model and time', 'a x 0-9 ~m', 'b y 1-8 <a ~m'],
  ['different types', 'a x 0-9 #q embedding', 'b y 1-8 <a #q'],
  ['different response ids', 'a x 0-9 #q @1', 'b y 1-8 <a #q @2'],
  ['one after the other, or at once in the last millisecond', 'a x 0-5 #q', 'b y 4-9 #q'],
  ['different parents', 'a x 0-9 #q', 'b y 1-8 <elsewhere #q'],
  ['two possible partners each', 'a x 0-9 #q', 'b x 0-9 #q', 'c y 1-8 #q', 'd y 1-8 #q'],
  ['two that succeeded', 'a x 0-9 #q', 'b y 1-3 <a #q', 'c y 4-8 <a #q'],
  ['a small and a large model', 'a x 0-9 #q ~gpt-4o', 'b y 1-8 <a #q ~gpt-4o-mini'],
  ['a model and a later one', 'a x 0-9 #q ~claude-3', 'b y 1-8 <a #q ~claude-3-5-sonnet'],
  ['a model and the next one', 'a x 0-9 #q ~gpt-4', 'b y 1-8 <a #q ~gpt-4-1'],
  ['an id that the service gives again, to another model', 'a x 0-9 @1 ~small', 'b y 1-8 <a @1 ~large'],
  ['an id that the service gives again, beside each other', 'a x 0-9 @1 #q', 'b y 1-8 @1 #p'],
])('two records are of two calls with %s', (_, ...runs) => {
  expect(pairs(...runs)).toBe('');
});

test('tools with different names are two calls', () => {
  const [a, b] = [run('a x 0-9 #q tool'), { ...run('b y 1-8 <a #q tool'), name: 'search' }];
  expect(sameCalls([a, b]).size).toBe(0);
});

test('a record without an id joins no two that have different ids or models', () => {
  expect(pairs('a x 0-9 #q @1', 'b y 1-8 <a #q @2', 'c z 2-7 <b #q')).toBe('b>c');
  expect(pairs('a x 0-9 #q ~gpt-4o', 'b y 1-8 <a #q ~gpt-4o-mini', 'c z 2-7 <b #q')).toBe('b>c');
});

test('each of 200 concurrent calls that two sources record keeps its partner, in any order of the runs', () => {
  const evidences = fc.array(fc.tuple(fc.nat(100), fc.constantFrom('id', 'request', 'parent')), {
    minLength: 200,
    maxLength: 200,
  });
  const trace = evidences.chain((list) => {
    const runs = list.flatMap(([start, evidence], at) => {
      const shared = { id: `@${at}`, request: `#question${at}`, parent: `#q` }[evidence];
      const parent = evidence === 'parent' ? `o${at}` : 'root';
      return [
        run(`o${at} x ${start}-${start + 50} ${shared}`),
        run(`i${at} y ${start + 1}-${start + 49} <${parent} ${shared}`),
      ];
    });
    return fc.shuffledSubarray(runs, { minLength: runs.length });
  });
  const expected = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`o${at}`, `i${at}`]));
  forAll(20, [trace], (runs) => {
    expect(Object.fromEntries(sameCalls(runs))).toEqual(expected);
  });
});

const many = (count: number, text: (at: number) => string): ComparedRun[] =>
  Array.from({ length: count }, (_, at) => run(text(at)));

test('20,000 calls in a trace are compared before the test ends, however they are nested', () => {
  const call = (at: number) => `${at} ${at % 2 === 0 ? 'x' : 'y'} ${at}-${100_000 - at}`;
  const traces = [
    many(20_000, (at) => `${call(at)} <${at - 1} #${Math.floor(at / 200)}`),
    many(20_000, (at) => `${call(at)} <${at - 1} #q`),
    many(20_000, (at) => `${call(at)} #${Math.floor(at / 2)}`),
    many(20_000, (at) => `${call(at)} @1 #${at}`),
    many(20_000, (at) => `${call(at)} =${at - 1} #q ~gpt-4o-${at}`),
    many(20_000, (at) => `${call(at)} @${at % 101}${at < 10_000 ? ` =${at + 1}` : ''}`),
  ];
  const found = traces.map((runs) => repeatedCallsIn(runs, () => true).size);
  expect(found).toEqual([0, 0, 20_000, 0, 20_000, 20_000]);
});

test('of marks that form a circle, the last is ignored', () => {
  expect(pairs('a x 0-9 =b', 'b x 1-8 =c', 'c x 2-7 =a')).toBe('a>b b>c');
});

test('300 calls with one prompt, one after the other, keep their partners', () => {
  const outer = many(300, (at) => `o${at} x ${at * 10}-${at * 10 + 8} #q`);
  const inner = many(300, (at) => `i${at} y ${at * 10 + 1}-${at * 10 + 7} <o${at} #q`);
  expect(sameCalls([...outer, ...inner]).size).toBe(300);
});

test.each<[string, string, ...string[]]>([
  ['the outermost', 'b<a', 'a x 0-9 =b', 'b y 1-8 <a'],
  ['the outermost, also if it is the named one', 'a<b', 'a x 0-9 =b <b', 'b y 1-8'],
  ['the first, if they are beside each other', 'a<b', 'a x 2-9 =b', 'b y 1-8'],
  ['the first of the outermost', 'b<a c<a', 'a x 0-9 =b', 'b x 3-9 =c', 'c y 2-4 <a'],
])('the head of the records of a call is %s', (_, expected, ...runs) => {
  const repeated = repeatedCallsIn(runs.map(run), () => false);
  const found = [...repeated].flatMap(([id, { headId }]) => (headId === undefined ? [] : `${id}<${headId}`));
  expect(found.sort().join(' ')).toBe(expected);
});

test.each([
  ['abc', 'ab'],
  ['ab', 'a'],
  ['a', ''],
  ['c', ''],
  ['', ''],
])('if the records %j of a call have usage, that of %j does not count', (having, expected) => {
  const repeated = repeatedCallsIn(['a x 0-9 =b', 'b y 1-8 =c', 'c z 2-7'].map(run), ({ id }) => having.includes(id));
  const ignored = [...repeated].flatMap(([id, { isUsageRepeated }]) => (isUsageRepeated ? id : []));
  expect(ignored.sort().join('')).toBe(expected);
});

test('the usage of one record counts if several name one without usage', () => {
  const runs = ['a x 0-9 =c', 'b y 1-8 =c', 'c z 2-7'].map(run);
  for (const given of [runs, runs.toReversed()]) {
    const repeated = repeatedCallsIn(given, ({ id }) => id !== 'c');
    expect([...repeated].flatMap(([id, { isUsageRepeated }]) => (isUsageRepeated ? id : []))).toEqual(['a']);
  }
});

test('the evidence of a run is the id that the service gave, and for a tool the id of its call and its arguments', () => {
  const evidence = (run_type: string, metadata: Record<string, unknown>) =>
    callEvidenceOf({ run_type, extra: { metadata } }, { request: 'texts', arguments: 'arguments' });
  const [source, responseId, sameCall] = ['fetch', 'resp_1', 'a'];
  expect(evidence('llm', { recorded_by: [source, 'x'], response_id: responseId, same_call: sameCall })).toEqual({
    ...{ source, responseId, sameCall, request: 'texts' },
  });
  expect(evidence('tool', { tool_call_id: 'call_1', response_id: responseId })).toEqual({
    ...{ responseId: 'call_1', request: 'arguments' },
  });
  expect(evidence('llm', { response_id: 'aitxt-1', recorded_by: 7, otel: { scope: { name: 'ai' } } })).toEqual({
    ...{ source: 'ai', request: 'texts' },
  });
});
