import { expect, it } from 'vitest';
import { recordJson, recordLines } from '#src/cli/dev/audit.ts';
import type { RunOperation } from '#src/receiver/domain/run-message.ts';

const ID = '01900000-0000-7000-8000-000000000001';
const CONTROLS = '\u001b[2J \u009b2J \u202e \u{e0001} \u2028 \u007f';

const post = (fields: RunOperation['fields'], name = 'photo'): RunOperation => ({
  kind: 'post',
  id: ID,
  fields,
  attachments: [{ name, mimeType: 'image/png', bytes: Buffer.alloc(70) }],
});

it('a record has a line for each field and attachment, with its size in bytes', () => {
  expect(recordLines(post({ name: 'ask', run_type: 'llm', inputs: { q: 'é' } }), true)).toEqual([
    `post ${ID}  ask, llm`,
    '  name                5  "ask"',
    '  run_type            5  "llm"',
    '  inputs             10  {"q":"é"}',
    '  attachment         70  "photo" image/png',
  ]);
});

it.each([
  [1_998, true, '"'],
  [1_999, true, '…'],
  [1_999, false, '"'],
])('a field of %i characters and two quotes, shortened: %j, ends with %s', (length, isShortened, end) => {
  const line = recordLines(post({ error: 'x'.repeat(length) }), isShortened)[1] ?? '';
  expect(line.at(-1)).toBe(end);
  expect(line).toContain(` ${length + 2}  `);
});

it('control characters are escaped, in JSON without a change of the value', () => {
  const operation = post({ name: CONTROLS, error: CONTROLS }, CONTROLS);
  expect(recordLines(operation, true).join('')).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}]/u);
  const json = recordJson(operation);
  expect(json).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}]/u);
  expect(JSON.parse(json)).toEqual({
    kind: 'post',
    id: ID,
    bytes: expect.any(Number),
    fields: operation.fields,
    attachments: [{ name: CONTROLS, mime_type: 'image/png', size: 70 }],
  });
});
