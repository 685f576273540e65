// Runs with given start and end times, as a strict receiver gets them.
import { afterEach, describe, expect, test } from 'vitest';
import { configure, flush, startRun, type Timestamp, traceable, withRun } from '#src/index.ts';
import { createReceiver } from '#src/receiver.ts';
import { record } from '../instrument/recorder.ts';
import { logLines } from '../support/log-lines.ts';

afterEach(() => {
  configure({ tracing: false });
});

/** Sends the runs that `work` records to a strict receiver and returns the received runs, parents before children. */
async function received(work: () => void) {
  const receiver = await createReceiver({ port: 0, strict: true });
  configure({ endpoint: receiver.url });
  work();
  expect(await flush()).toEqual({ ok: true, pending: 0 });
  const runs = await receiver.runs();
  await receiver.close();
  return runs;
}

/** 2026-01-02T03:04:05.678Z in milliseconds. */
const START_MS = Date.UTC(2026, 0, 2, 3, 4, 5, 678);

test('a back-filled trace arrives with its times, and its dotted order contains the start times', async () => {
  const runs = await received(() => {
    const root = startRun({ name: 'root', startTime: '2026-01-02T03:04:05.678901Z' });
    const child = root.child({ name: 'child', startTime: '2026-01-02T03:04:06.000002Z' });
    child.fail(new Error('no'), { endTime: '2026-01-02T03:04:07.000003Z' });
    root.end({ a: 1 }, { endTime: '2026-01-02T03:04:08.000004Z' });
  });
  const [root, child] = runs;
  expect(runs).toMatchObject([
    {
      start_time: '2026-01-02T03:04:05.678901Z',
      end_time: '2026-01-02T03:04:08.000004Z',
      dotted_order: `20260102T030405678901Z${root?.id}`,
      outputs: { a: 1 },
    },
    {
      start_time: '2026-01-02T03:04:06.000002Z',
      end_time: '2026-01-02T03:04:07.000003Z',
      dotted_order: `20260102T030405678901Z${root?.id}.20260102T030406000002Z${child?.id}`,
      parent_run_id: root?.id,
      error: expect.stringMatching(/^Error: no/),
    },
  ]);
});

test.each<[string, Timestamp, string]>([
  ['a Date', new Date(START_MS), '2026-01-02T03:04:05.678000Z'],
  ['milliseconds', START_MS, '2026-01-02T03:04:05.678000Z'],
  ['milliseconds with a fraction', START_MS + 0.25, '2026-01-02T03:04:05.678250Z'],
  ['text with microseconds', '2026-01-02T03:04:05.678901Z', '2026-01-02T03:04:05.678901Z'],
  ['text with a zone', '2026-01-02T04:04:05.5+01:00', '2026-01-02T03:04:05.500000Z'],
])('a time may be %s', (_, time, expected) => {
  const recorder = record();
  startRun({ name: 'a', startTime: time }).end({}, { endTime: time });
  expect(recorder.runs).toMatchObject([{ start_time: expected, end_time: expected }]);
});

describe('a time that breaks the order of a trace', () => {
  test('is replaced by the start of the parent, or by the own start', () => {
    const recorder = record();
    const parent = startRun({ name: 'parent', startTime: START_MS });
    const child = parent.child({ name: 'child', startTime: START_MS - 1 });
    child.end({}, { endTime: START_MS - 2 });
    const time = '2026-01-02T03:04:05.678000Z';
    expect(recorder.run('child')).toMatchObject({ start_time: time, end_time: time });
    expect(recorder.runs.map(({ name }) => name)).toEqual(['parent', 'child']);
  });

  test('is the same for several children, which stay in the order of their creation', () => {
    const recorder = record();
    const names = Array.from({ length: 100 }, (_, number) => `child ${number}`);
    const parent = startRun({ name: 'parent', startTime: START_MS });
    for (const name of names) parent.child({ name, startTime: START_MS });
    expect(recorder.runs.map(({ name }) => name)).toEqual(['parent', ...names]);
  });
});

test('a generated id contains the start time, and the ids of other runs stay in order', () => {
  record();
  const secondAgoMs = Date.now() - 1_000;
  const ids: string[] = [];
  for (let count = 0; count < 200; count++) {
    ids.push(startRun({ name: 'now' }).id);
    for (const startMs of [START_MS, secondAgoMs]) {
      const { id } = startRun({ name: 'earlier', startTime: startMs });
      expect(Number.parseInt(id.replace('-', '').slice(0, 12), 16)).toBe(startMs);
    }
  }
  expect(ids).toEqual([...ids].sort());
});

test('a run that started earlier and has no end time ends now', () => {
  const recorder = record();
  const beforeMs = Date.now();
  const run = startRun({ name: 'a', startTime: beforeMs - 60_000 });
  const child = withRun(run, () => startRun({ name: 'child' }));
  child.end();
  run.end();
  for (const { end_time } of recorder.runs) {
    // The clock of the library differs by at most 20 ms.
    expect(Date.parse(end_time as string)).toBeGreaterThanOrEqual(beforeMs - 20);
    expect(Date.parse(end_time as string)).toBeLessThanOrEqual(Date.now() + 20);
  }
});

test.each<[string, unknown]>([
  ['text that is not a time', 'yesterday'],
  ['an invalid Date', new Date(Number.NaN)],
  ['a time before 1970', -1],
  ['a time after 2255', Date.UTC(2255, 0)],
  ['another value', { valueOf: () => START_MS }],
])('%s is reported and left out', (_, time) => {
  const recorder = record();
  const lines = logLines();
  const options = { endTime: time as Timestamp };
  startRun({ name: 'a', startTime: time as Timestamp }).end({}, options);
  startRun({ name: 'b' }).fail(new Error(), options);
  const expected =
    'to be a Date, milliseconds since 1970 or an ISO 8601 string, between 1970 and 2255; the option is ignored.';
  expect(lines).toEqual([
    `warn: startRun: expected \`startTime\` ${expected}`,
    `warn: Run.end: expected \`endTime\` ${expected}`,
    `warn: Run.fail: expected \`endTime\` ${expected}`,
  ]);
  for (const { end_time } of recorder.runs) expect(Date.now() - Date.parse(end_time as string)).toBeLessThan(60_000);
});

describe('the id of an example', () => {
  const example = '018f0000-0000-7000-8000-000000000005';

  test('arrives with the run that has it, and with no nested run', async () => {
    const inner = traceable(() => 1, { name: 'inner' });
    const outer = traceable(() => inner(), { name: 'outer' });
    const runs = await received(() => {
      outer.with({ referenceExampleId: example.toUpperCase() })();
      startRun({ name: 'by hand', referenceExampleId: example }).end();
    });
    const ids = runs.map(({ name, reference_example_id: id }) => [name, id]);
    expect(Object.fromEntries(ids)).toEqual({ outer: example, inner: undefined, 'by hand': example });
  });

  test('is reported and left out if it is no UUID', () => {
    const recorder = record();
    const lines = logLines();
    startRun({ name: 'a', referenceExampleId: 'first' });
    expect(lines).toEqual(['warn: startRun: expected `referenceExampleId` to be a UUID; the option is ignored.']);
    expect(recorder.runs[0]).not.toHaveProperty('reference_example_id');
  });
});
