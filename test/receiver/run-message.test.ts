import { describe, expect, test } from 'vitest';
import { type RunMessage, readRun, rulesFor, type Way } from '../../src/receiver/ingest/run-message.ts';
import { Findings, type ValidationError } from '../../src/receiver/refusal.ts';
import { CHILD, CHILD_ORDER, END, makeChild, makeRun, ROOT, ROOT_ORDER } from './wire.ts';

type Mode = readonly [way: Way, kind: 'post' | 'patch', strict: boolean];

/** What is wrong with a record that comes that way, as `type field`. */
function wrong(record: Record<string, unknown>, [way, kind, strict]: Mode, more: Partial<RunMessage> = {}): string[] {
  const findings = new Findings();
  readRun({ rules: rulesFor(way, kind, strict), record: present(record), loc: ['body'], ...more }, findings);
  try {
    findings.refuseIfAny();
    return [];
  } catch (error) {
    const { detail } = error as { detail: readonly ValidationError[] };
    return detail.map(({ type, loc }) => `${type} ${loc.slice(1).join('.')}`);
  }
}

function read(record: Record<string, unknown>, mode: Mode, more: Partial<RunMessage> = {}) {
  expect(wrong(record, mode, more)).toEqual([]);
  const [way, kind, strict] = mode;
  const message = { rules: rulesFor(way, kind, strict), record: present(record), loc: ['body'], ...more };
  return readRun(message, new Findings());
}

/** As JSON brings it: without what is undefined. */
const present = (record: Record<string, unknown>) => JSON.parse(JSON.stringify(record));

const FIELD: Mode = ['multipart', 'post', false];
const STRICT: Mode = ['multipart', 'post', true];
const STRICT_PATCH: Mode = ['multipart', 'patch', true];

describe('the fields of a record', () => {
  test('are what it tells, with trace and parent from its order', () => {
    const { id: _, ...fields } = makeChild();
    expect(read(makeChild(), STRICT)).toEqual({ id: CHILD, fields });
    const little = { id: CHILD, dotted_order: CHILD_ORDER, name: 'call', trace_id: ROOT };
    expect(read(little, ['multipart', 'patch', false])).toEqual({
      id: CHILD,
      fields: { name: 'call', dotted_order: CHILD_ORDER, trace_id: ROOT, parent_run_id: ROOT },
    });
  });

  test('give way to payloads that came in parts of their own', () => {
    const payloads = [{ field: 'inputs' as const, value: { b: 2 }, loc: ['body', 'part'] }];
    expect(read(makeRun({ inputs: { a: 1 } }), FIELD, { payloads }).fields.inputs).toEqual({ b: 2 });
  });

  test('that no record knows are passed over, in strict mode named', () => {
    const record = makeRun({ child_runs: [], toString: 1 });
    expect(read(record, FIELD).fields).not.toHaveProperty('child_runs');
    expect(wrong(record, STRICT)).toEqual(['unknown_field child_runs', 'unknown_field toString']);
  });
});

describe('the id', () => {
  test('comes from outside or from the record', () => {
    expect(read(makeRun({ id: undefined }), FIELD, { id: ROOT }).id).toBe(ROOT);
    expect(read(makeRun(), FIELD).id).toBe(ROOT);
    expect(wrong(makeRun({ id: CHILD }), FIELD, { id: ROOT })).toEqual(['mismatch id']);
  });
});

describe('what must be there', () => {
  test.each(['name', 'run_type', 'start_time', 'trace_id', 'dotted_order'])('%s in a post of parts', (field) => {
    for (const mode of [FIELD, STRICT])
      expect(wrong(makeRun({ [field]: undefined }), mode)).toContain(`missing ${field}`);
  });

  test('null is nothing in the field, and wrong in strict mode', () => {
    expect(wrong(makeRun({ name: null }), FIELD)).toEqual(['missing name']);
    expect(wrong(makeRun({ name: null }), STRICT)).toEqual(['string name']);
    expect(wrong(makeRun({ end_time: null }), FIELD)).toEqual([]);
    expect(wrong(makeRun({ end_time: null }), STRICT)).toEqual(['timestamp end_time']);
  });

  test.each<[string, Record<string, unknown>, Mode]>([
    ['id', makeRun({ id: undefined }), STRICT],
    ['name', makeRun({ name: undefined, end_time: END }), STRICT_PATCH],
    ['end_time', makeRun(), STRICT_PATCH],
    ['session_name', makeRun({ session_name: undefined }), STRICT],
    ['parent_run_id', makeChild({ parent_run_id: undefined }), STRICT],
    ['end_time', { outputs: {} }, ['simple', 'patch', true]],
    ['session_name', makeRun({ session_name: undefined, inputs: {} }), ['simple', 'post', true]],
  ])('%s in strict mode alone: %j', (field, record, [way, kind, strict]) => {
    expect(wrong(record, [way, kind, strict], { id: String(record.id ?? ROOT) })).toEqual([`missing ${field}`]);
    expect(wrong(record, [way, kind, false], { id: String(record.id ?? ROOT) })).toEqual([]);
  });

  test('any of the two names of a project', () => {
    expect(wrong(makeRun({ session_name: undefined, session_id: CHILD }), STRICT)).toEqual([]);
  });

  test('little of a patch in the field', () => {
    expect(wrong({ end_time: END }, ['simple', 'patch', false], { id: ROOT })).toEqual([]);
    expect(wrong({ end_time: END }, ['batch', 'patch', false])).toEqual(['missing id']);
    expect(wrong({ trace_id: ROOT, dotted_order: ROOT_ORDER }, ['multipart', 'patch', false], { id: ROOT })).toEqual(
      [],
    );
  });
});

test.each(['inputs', 'outputs', 'events'])('%s in a main part are misplaced in strict mode', (field) => {
  const record = makeRun({ [field]: field === 'events' ? [] : {} });
  expect(wrong(record, STRICT)).toEqual([`misplaced ${field}`]);
  expect(wrong(record, FIELD)).toEqual([]);
});

describe('what fields are to each other', () => {
  test.each<[string, Record<string, unknown>, string[]]>([
    ['a trace that is not the root', makeRun({ trace_id: CHILD }), ['mismatch trace_id']],
    ['a parent that is not in the order', makeRun({ parent_run_id: CHILD }), ['mismatch parent_run_id']],
    [
      'an order of another run',
      makeRun({ dotted_order: ROOT_ORDER.replace(ROOT, CHILD), trace_id: CHILD }),
      ['mismatch dotted_order'],
    ],
    [
      'its own parent',
      makeRun({ dotted_order: `${ROOT_ORDER}.${ROOT_ORDER}`, parent_run_id: ROOT }),
      ['mismatch parent_run_id'],
    ],
  ])('%s', (_, record, found) => {
    expect(wrong(record, FIELD)).toEqual(found);
    expect(wrong(record, STRICT)).toEqual(found);
  });
});
