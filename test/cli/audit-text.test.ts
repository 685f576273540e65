import { describe, expect, it } from 'vitest';
import { recordBytes, recordJson, recordLines } from '../../src/cli/audit-text.ts';
import type { RunOperation } from '../../src/receiver/store/store.ts';

const ID = '01900000-0000-7000-8000-000000000001';

const operation = (fields: RunOperation['fields'], attachments: RunOperation['attachments'] = []): RunOperation => ({
  kind: 'post',
  id: ID,
  fields,
  attachments,
});

const photo = { name: 'photo', mimeType: 'image/png', bytes: Buffer.alloc(70) };

describe('a record as lines', () => {
  it('says what it is, and each field and attachment with its size', () => {
    const lines = recordLines(operation({ name: 'ask', run_type: 'llm', inputs: { q: 'é' } }, [photo]), true);
    expect(lines).toEqual([
      `post ${ID}  ask, llm`,
      '  name                5  "ask"',
      '  run_type            5  "llm"',
      // {"q":"é"}: nine characters, of which one has two bytes
      '  inputs             10  {"q":"é"}',
      '  attachment         70  "photo" image/png',
    ]);
  });

  it.each([
    [1_998, false],
    [1_999, true],
  ])('cuts a text of %i characters: %j, and only where it is asked to', (length, isCut) => {
    const error = 'x'.repeat(length);
    const cut = recordLines(operation({ error }), true).at(-1) ?? '';
    const whole = recordLines(operation({ error }), false).at(-1) ?? '';
    expect(whole).toContain(JSON.stringify(error));
    expect(cut === whole).toBe(!isCut);
    expect(cut).toMatch(isCut ? /…$/ : /"$/);
    // The size is that of the whole.
    expect(cut).toContain(String(length + 2));
  });

  it('shows what would steer a terminal', () => {
    const attachment = { name: '\u202e', mimeType: 'a\u001b[2J/b', bytes: Buffer.alloc(1) };
    const text = recordLines(operation({ name: '\u001b[2J', error: '\u009b2J' }, [attachment]), true).join('\n');
    expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  });
});

describe('a record as JSON', () => {
  it('is complete on one line, but for the bytes of attachments', () => {
    const fields = { name: 'ask', error: 'x'.repeat(10_000), inputs: { line: 'a\nb' } };
    const json = recordJson(operation(fields, [photo]));
    expect(json).not.toContain('\n');
    expect(JSON.parse(json)).toEqual({
      kind: 'post',
      id: ID,
      bytes: recordBytes(operation(fields, [photo])),
      fields,
      attachments: [{ name: 'photo', mime_type: 'image/png', size: 70 }],
    });
  });

  it('escapes what would steer a terminal, and means the same', () => {
    const fields = { error: '\u009b2J \u202e \u{e0001} \u2028 \u007f' };
    const json = recordJson(operation(fields));
    expect(json).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}]/u);
    expect(JSON.parse(json).fields).toEqual(fields);
  });
});
