import { types } from 'node:util';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { diagnostics } from '#src/base/diagnostics.ts';
import { errorText } from '#src/payload/errors.ts';
import { type Redaction, redact } from '#src/payload/redaction/redact.ts';
import { serialize } from '#src/payload/serialize.ts';
import type { PayloadRules } from '#src/payload/truncate.ts';
import { anything, revokedProxy } from '../base/hostile.ts';
import { cases, seed } from '../support/campaign.ts';

const CASES = cases(3_000);

const BATCH = 1_000;

/** Followed by four digits: no payload may show a part of it. */
const SECRET = 'SECRET';
const HUGE = `${'x'.repeat(5_000_000)}${SECRET}1234${'y'.repeat(5_000_000)}`;

/** Wraps a function of the application and counts its calls. */
type Counted = <Args extends unknown[], Result>(work: (...args: Args) => Result) => (...args: Args) => Result;

const fail = (): never => {
  throw new Error(`${SECRET}5678`);
};
const never = (): Promise<never> => new Promise(() => {});

/** Hostile payloads around another value, varied by a number. */
const MAKERS: Readonly<Record<string, (counted: Counted, seed: number, inner: unknown) => unknown>> = {
  proxy: (_, seed, inner) => {
    const get = (target: object, key: PropertyKey, receiver: unknown) =>
      seed % 7 === 0 && key !== 'toJSON' && key !== 'length' ? fail() : Reflect.get(target, key, receiver);
    return { proxy: new Proxy<object>(seed % 2 === 0 ? { a: inner } : [inner, seed], { get }), inner };
  },
  'revoked proxy': (_, seed, inner) => {
    const proxy = revokedProxy([[], {}, () => {}][seed % 3]);
    return seed % 5 === 0 ? proxy : { proxy, inner };
  },
  'throwing getter': (counted, seed, inner) => {
    const target = [{ inner }, [inner, 1, 2], new Map([[1, inner]]), new Error('x'), Object.create(null)][seed % 5];
    const get = counted(seed % 2 === 0 ? fail : () => seed);
    return Object.defineProperties(target as object, {
      0: { enumerable: true, get },
      other: { enumerable: true, get: counted(fail) },
    });
  },
  'throwing toJSON': (counted, seed, inner) => {
    const toJSON = counted(fail);
    return [{ toJSON, inner }, Object.assign([inner], { toJSON }), Object.assign(new Date(), { toJSON })][seed % 3];
  },
  cycle: (_, seed, inner) => {
    const node: Record<string, unknown> = { inner };
    node.self = seed % 2 === 0 ? node : { up: node };
    node.list = [node, new Map([['node', node]]), new Set([node]), new Error('x', { cause: node })];
    return node;
  },
  'shared graph': (_, seed, inner) => {
    let shared: unknown = seed % 2 === 0 ? inner : `leaf ${SECRET}4321`;
    for (let level = 0; level < 30; level++) shared = seed % 3 === 0 ? [shared, shared] : { a: shared, b: shared };
    return shared;
  },
  surrogate: (_, seed, inner) => {
    const halves = `${'a'.repeat(seed % 200)}\ud800${'b'.repeat(seed % 90)}\udc00`;
    return { halves, [halves.slice(0, 30)]: inner, whole: '😀'.repeat(seed % 300) };
  },
  binary: (_, seed, inner) => {
    const bytes = new Uint8Array(seed % 5_000).fill(seed);
    const views = [bytes, bytes.buffer, Buffer.from(bytes), new DataView(bytes.buffer), new Blob([bytes])];
    return [views[seed % views.length], inner];
  },
  '10 MB': (_, seed, inner) => {
    const text = seed % 2 === 0 ? HUGE : `${HUGE.slice(seed)}${SECRET}8765${'z'.repeat(seed % 700)}`;
    return seed % 3 === 0 ? text : { text, inner, more: [text] };
  },
  pending: (counted, _, inner) => ({
    inner,
    later: { toJSON: counted(never) },
    stream: new ReadableStream({ pull: never }),
  }),
};

interface Hostile {
  readonly value: unknown;
  /** The largest number of calls of one function of the application. */
  readonly calls: () => number;
}

const hostile: fc.Arbitrary<() => Hostile> = fc
  .record({
    kind: fc.constantFrom(...Object.keys(MAKERS)),
    seed: fc.nat(10_000),
    inner: anything,
    isFrozen: fc.boolean(),
  })
  .map(({ kind, seed, inner, isFrozen }) => () => {
    const counts: { calls: number }[] = [];
    const counted: Counted = (work) => {
      const count = { calls: 0 };
      counts.push(count);
      return (...args) => {
        count.calls++;
        return work(...args);
      };
    };
    const value = { before: `a ${SECRET}1111 b`, value: MAKERS[kind]?.(counted, seed, inner()), after: seed };
    if (isFrozen) Object.freeze(value);
    return { value, calls: () => Math.max(0, ...counts.map(({ calls }) => calls)) };
  });

const patterns = [new RegExp(`${SECRET}\\d{4}`)];
const paths = ['inputs.inner', '**.b', 'inputs.list[*].deep', 'metadata.x'];
const redactions: readonly Redaction[] = [
  redact({ patterns }),
  redact({ patterns, paths }),
  redact({ patterns, replace: (found, path) => `<${found.length} at ${path.slice(0, 20)}>` }),
  redact({ patterns, paths, replace: fail }),
  redact({ patterns, replace: (() => Promise.reject(new Error('no'))) as never }),
];

const limits = fc.record({
  depth: fc.integer({ min: 1, max: 70 }),
  width: fc.integer({ min: 1, max: 300 }),
  nodes: fc.integer({ min: 1, max: 600 }),
  bytes: fc.integer({ min: 1, max: 4_000 }),
});

/** Characters of the JSON text: at most six for each, with keys of 256 and markers of 400 beyond the limits. */
const lengthMax = ({ nodes, bytes }: PayloadRules): number => 6 * (bytes + 400 + (nodes + 1) * 256) + (nodes + 70) * 40;

/** An escaped surrogate, which the same letters after an escaped backslash are not. */
const HALF_OF_A_PAIR = /(?<!\\)(?:\\\\)*\\ud[89a-f]/;

/** The data properties of plain objects and lists, by identity. */
function propertiesOf(value: unknown): unknown[] {
  if (typeof value !== 'object' || value === null || types.isProxy(value) || ArrayBuffer.isView(value)) return [];
  const properties = Object.entries(Object.getOwnPropertyDescriptors(value)).filter(([key]) => key !== 'stack');
  return [Object.getPrototypeOf(value), ...properties.flatMap(([key, { value: item, get }]) => [key, item, get])];
}

function check(make: () => Hostile, rules: PayloadRules): void {
  const { value, calls } = make();
  const inner = (value as { value: unknown }).value;
  const before = [...propertiesOf(value), ...propertiesOf(inner)];
  const text = serialize(value, rules, ['inputs']);
  expect(() => JSON.parse(text)).not.toThrow();
  expect(text.length).toBeLessThan(lengthMax(rules));
  expect(text).not.toMatch(/SECRET\d|ECRET\d{4}/);
  expect(text.isWellFormed()).toBe(true);
  expect(text).not.toMatch(HALF_OF_A_PAIR);
  const after = [...propertiesOf(value), ...propertiesOf(inner)];
  expect(after.length === before.length && after.every((part, at) => Object.is(part, before[at]))).toBe(true);
  expect(calls()).toBeLessThanOrEqual(1);

  const error = errorText(new Error(`no ${SECRET}1234`, { cause: make().value }), rules.redaction);
  expect(error.length).toBeLessThan(70_000);
  expect(error).not.toMatch(/SECRET\d{4}/);
}

test('a hostile payload is recorded within the limits, and stays as it is', async () => {
  diagnostics.setLog('silent');
  onTestFinished(() => diagnostics.setLog('warn'));
  const property = fc.property(hostile, limits, fc.constantFrom(...redactions), (make, bounds, redaction) =>
    check(make, { ...bounds, redaction }),
  );
  for (let done = 0; done < CASES; done += BATCH) {
    fc.assert(property, { numRuns: Math.min(BATCH, CASES - done), seed: seed() + done, endOnFailure: true });
    // Promises release their values between tasks.
    await new Promise(setImmediate);
  }
}, 600_000);
