import { describe, expect, test } from 'vitest';
import { parsePartName } from '../../src/receiver/ingest/part-name.ts';
import { ROOT } from './wire.ts';

const HEX = ROOT.replaceAll('-', '');

describe('the name of a part', () => {
  test.each([
    [`post.${ROOT}`, { kind: 'record', operation: 'post', id: ROOT }],
    [`patch.${ROOT}`, { kind: 'record', operation: 'patch', id: ROOT }],
    [`patch.${ROOT.toUpperCase()}`, { kind: 'record', operation: 'patch', id: ROOT }],
    [`post.${ROOT}.inputs`, { kind: 'payload', operation: 'post', id: ROOT, field: 'inputs' }],
    [`patch.${ROOT}.outputs`, { kind: 'payload', operation: 'patch', id: ROOT, field: 'outputs' }],
    [`patch.${ROOT}.events`, { kind: 'payload', operation: 'patch', id: ROOT, field: 'events' }],
    [`attachment.${ROOT}.a`, { kind: 'attachment', id: ROOT, name: 'a' }],
    [`attachment.${ROOT}.a.b "c"\r\n../d`, { kind: 'attachment', id: ROOT, name: 'a.b "c"\r\n../d' }],
  ])('%j says what it holds, in both modes', (name, expected) => {
    expect(parsePartName(name, true)).toEqual(expected);
    expect(parsePartName(name, false)).toEqual(expected);
  });

  test.each([
    [`post.${HEX}`, { kind: 'record', operation: 'post', id: ROOT }],
    [`attachment.${HEX}.a`, { kind: 'attachment', id: ROOT, name: 'a' }],
    [`post.${ROOT}.extra`, { kind: 'payload', operation: 'post', id: ROOT, field: 'extra' }],
    [`post.${ROOT}.error`, { kind: 'payload', operation: 'post', id: ROOT, field: 'error' }],
    [`feedback.${HEX}`, { kind: 'feedback', id: ROOT }],
    [`patch.${ROOT}.serialized`, { kind: 'payload', operation: 'patch', id: ROOT, field: 'serialized' }],
  ])('%j is of the field alone', (name, expected) => {
    expect(parsePartName(name, false)).toEqual(expected);
    expect(() => parsePartName(name, true)).toThrow(
      expect.objectContaining({ status: 400, detail: expect.stringContaining(`got ${JSON.stringify(name)}`) }),
    );
  });

  test.each([
    '',
    'post',
    'post.',
    'post.abc',
    `post.${ROOT} `,
    `post.${ROOT}.`,
    `post.${ROOT}.feedback`,
    'feedback.abc',
    `feedback.${ROOT}.score`,
    `post.${ROOT}.inputs.x`,
    `post.${ROOT}.__proto__`,
    `post.${ROOT.replace('-', '')}`,
    `put.${ROOT}`,
    `POST.${ROOT}`,
    `attachment.${ROOT}`,
    `attachment.${ROOT}.`,
    'attachment.abc.a',
  ])('%j is none, in either mode', (name) => {
    for (const strict of [true, false]) {
      expect(() => parsePartName(name, strict)).toThrow(
        expect.objectContaining({ status: 400, detail: expect.stringContaining(`got ${JSON.stringify(name)}`) }),
      );
    }
  });

  test('is cut at 120 characters where it is told', () => {
    const detailOf = (length: number) => {
      try {
        parsePartName('n'.repeat(length), true);
      } catch (error) {
        return String((error as { detail?: unknown }).detail);
      }
      return '';
    };
    expect(detailOf(120)).toContain(`got "${'n'.repeat(120)}"`);
    expect(detailOf(121)).toContain(`got "${'n'.repeat(120)}…"`);
  });
});
