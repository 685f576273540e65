import { describe, expect, test } from 'vitest';
import { RunState } from '../../src/receiver/store/run-state.ts';
import type { RunFields, RunOperation } from '../../src/receiver.ts';
import { makeRun, ROOT } from './wire.ts';

const { id: _, ...WHOLE } = makeRun();

function post(fields: RunFields = {}): RunOperation {
  return { kind: 'post', id: ROOT, fields: { ...WHOLE, ...fields }, attachments: [] };
}

describe('the weight of a run', () => {
  const attach = (name: string, size: number, mimeType = 'x/y'): RunOperation => ({
    ...post(),
    attachments: [{ name, mimeType, bytes: new Uint8Array(size) }],
  });
  const weight = (...operations: RunOperation[]): number => {
    const run = new RunState(ROOT);
    for (const operation of operations) run.take(operation);
    return run.sizeBytes;
  };
  const bare = weight(post());

  test('has for each attachment its bytes, name and type and 300 more', () => {
    expect(weight(attach('', 0, '')) - bare).toBe(300);
    expect(weight(attach('grün', 1_000, 'text/plain')) - bare).toBe(300 + 5 + 10 + 1_000);
    expect(weight(attach('a', 1), attach('b', 2)) - bare).toBe(2 * (300 + 1 + 3) + 3);
  });

  test('has an attachment that comes again once, as it came last', () => {
    expect(weight(attach('a', 1_000, 'text/plain'), attach('a', 1))).toBe(weight(attach('a', 1)));
  });

  test('has a field that comes again once, and one of a post and a patch twice', () => {
    const inputs = { inputs: { a: 'x'.repeat(100) } };
    expect(weight(post(inputs), post(inputs))).toBe(weight(post(inputs)));
    expect(
      weight(post(inputs), { kind: 'patch', id: ROOT, fields: inputs, attachments: [] }) - weight(post(inputs)),
    ).toBe(weight(post(inputs)) - bare);
  });
});
