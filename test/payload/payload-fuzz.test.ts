import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { diagnostics } from '../../src/base/diagnostics.ts';
import { errorText } from '../../src/payload/errors.ts';
import type { PayloadRules } from '../../src/payload/limits.ts';
import { type Redaction, redact } from '../../src/payload/redact.ts';
import { serialize } from '../../src/payload/serialize.ts';
import { Calls, type HostilePayload, hostilePayload, KINDS, SECRET, snapshotOf } from './hostile-payload.ts';

/** `npm run test:fuzz` asks for more; a seed makes a run the same again. */
const CASES = Number(process.env.FUZZ_CASES ?? 3_000);
const SEED = Number(process.env.FUZZ_SEED ?? Date.now() % 2 ** 31);

/** Cases that are tried without a pause. */
const BATCH = 1_000;

/** Every kind has to make up so much of the cases. */
const SHARE_MIN = 0.02;

const patterns = [new RegExp(`${SECRET}\\d{4}`)];
const paths = ['inputs.inner', '**.b', 'inputs.list[*].deep', 'metadata.x'];
const redactions: readonly Redaction[] = [
  redact({ patterns }),
  redact({ patterns, paths }),
  redact({ patterns, replace: (found, path) => `<${found.length} at ${path.slice(0, 20)}>` }),
  redact({
    patterns,
    paths,
    replace: () => {
      throw null;
    },
  }),
  redact({ patterns, replace: (() => new Promise(() => {})) as never }),
  redact({ patterns, replace: (() => Promise.reject(new Error('no'))) as never }),
];

const limits = fc.record({
  depth: fc.integer({ min: 1, max: 70 }),
  width: fc.integer({ min: 1, max: 300 }),
  nodes: fc.integer({ min: 1, max: 600 }),
  bytes: fc.integer({ min: 1, max: 4_000 }),
});

/** A key that has no room is kept up to this length. */
const KEY_MAX = 256;
/** A marker or a message, which may go beyond the room by one. */
const MARKER_MAX = 400;

/** As an escape of JSON, which the same letters behind an escaped backslash are not. */
const HALF_OF_A_PAIR = /(?<!\\)(?:\\\\)*\\ud[89a-f]/;

/** Characters that the text of a payload may have at most: six for one that has to be escaped. */
function lengthMax({ nodes, bytes }: PayloadRules): number {
  return 6 * (bytes + MARKER_MAX + (nodes + 1) * KEY_MAX) + (nodes + 70) * 40;
}

function checkPayload({ make, times }: HostilePayload, rules: PayloadRules): void {
  const calls = new Calls();
  const value = make(calls);
  const before = snapshotOf(value);
  const text = serialize(value, rules, ['inputs']);
  expect(() => JSON.parse(text)).not.toThrow();
  expect(text.length).toBeLessThan(lengthMax(rules));
  // A part of it that was cut from the rest could be found out.
  expect(text).not.toMatch(/SECRET\d|ECRET\d{4}/);
  expect(text.isWellFormed()).toBe(true);
  expect(text).not.toMatch(HALF_OF_A_PAIR);
  const after = snapshotOf(value);
  expect(after.length).toBe(before.length);
  expect(after.every((part, at) => Object.is(part, before[at]))).toBe(true);
  expect(calls.most).toBeLessThanOrEqual(times);
}

function checkError({ make }: HostilePayload, rules: PayloadRules): void {
  const error = new Error(`no ${SECRET}1234`, { cause: make(new Calls()) });
  const text = errorText(error, rules.redaction);
  expect(text.length).toBeLessThan(70_000);
  expect(text).not.toMatch(/SECRET\d{4}/);
}

test(`no payload is too hostile (${CASES} cases, seed ${SEED})`, async () => {
  diagnostics.setLog('silent');
  onTestFinished(() => diagnostics.setLog('warn'));
  const counts = new Map<string, number>(KINDS.map((kind) => [kind, 0]));
  const property = fc.property(hostilePayload, limits, fc.constantFrom(...redactions), (payload, bounds, redaction) => {
    const rules = { ...bounds, redaction };
    checkPayload(payload, rules);
    checkError(payload, rules);
    counts.set(payload.kind, (counts.get(payload.kind) ?? 0) + 1);
  });
  for (let done = 0; done < CASES; done += BATCH) {
    fc.assert(property, { numRuns: Math.min(BATCH, CASES - done), seed: SEED + done, endOnFailure: true });
    // What promises hold on to is let go of between tasks alone.
    await new Promise(setImmediate);
  }
  const shares = [...counts].map(([kind, count]) => ({ kind, count, share: count / CASES }));
  const lines = shares.map(
    ({ kind, count, share }) => `${kind.padEnd(18)} ${String(count).padStart(7)}  ${(share * 100).toFixed(1)} %`,
  );
  console.log([`payload fuzz: ${CASES} cases, seed ${SEED}`, ...lines].join('\n'));
  expect(shares.filter(({ share }) => share < SHARE_MIN)).toEqual([]);
}, 600_000);
