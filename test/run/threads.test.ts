// The conversation and the user of runs, from every place where an application can set them.
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  type ContextFields,
  currentRun,
  fromHeaders,
  startRun,
  toHeaders,
  traceable,
  withContext,
  withExporter,
  withRun,
} from '#src/index.ts';
import { redact } from '#src/payload/redaction/redact.ts';
import { recordRuns } from '#src/testing.ts';
import { inSpan, setUp } from '../otel/set-up.ts';
import { logLines } from '../support/log-lines.ts';
import { makeSink } from './memory-sink.ts';

function record() {
  const recorder = recordRuns();
  onTestFinished(() => recorder.stop());
  /** Returns a line per run: `name thread user`. */
  const seen = () =>
    recorder.runs.map(({ name, extra }) => `${name} ${extra?.metadata?.thread_id} ${extra?.metadata?.user_id}`);
  return { recorder, seen };
}

const step = traceable(() => {}, { name: 'step' });
const ids = { threadId: 't1', userId: 'ada' };

describe('the options threadId and userId', () => {
  test('are recorded for a run and all runs nested in it', () => {
    const { seen } = record();
    traceable(() => step(), { name: 'traced', ...ids })();
    traceable(() => step(), { name: 'with', threadId: 'other', metadata: { user_id: 'bob' } }).with(ids)();
    const run = startRun({ name: 'started', ...ids });
    withRun(run, step);
    run.child({ name: 'child', userId: 'eve' });
    expect(seen()).toEqual([
      ...['traced t1 ada', 'step t1 ada'],
      ...['with t1 ada', 'step t1 ada'],
      ...['started t1 ada', 'step t1 ada', 'child t1 eve'],
    ]);
  });

  test('may be undefined, and any other value that is not text is reported', () => {
    const { seen } = record();
    const lines = logLines();
    startRun({ name: 'none', threadId: undefined, userId: undefined });
    startRun({ name: 'number', userId: 7 as never });
    startRun({ name: 'other', thread_id: 't1' } as never);
    expect(seen()).toEqual(['none undefined undefined', 'number undefined undefined', 'other undefined undefined']);
    expect(lines).toEqual([
      expect.stringContaining('expected `userId` to be a non-empty string'),
      expect.stringContaining('unknown option `thread_id` is ignored; use `threadId`'),
    ]);
  });
});

describe('withContext', () => {
  test('applies to all runs that start in the function, at any depth and time', async () => {
    const { recorder, seen } = record();
    const around = startRun({ name: 'around' });
    const result = await withRun(around, () =>
      withContext({ ...ids, tags: ['a'], metadata: { plan: 'free' } }, async () => {
        expect(currentRun()).toBe(around);
        await new Promise(setImmediate);
        traceable(() => step(), { name: 'nested' })();
        traceable(() => traceable(step, { root: true })(), { name: 'apart', root: true })();
        return 7;
      }),
    );
    startRun({ name: 'after' });
    expect(result).toBe(7);
    expect(seen()).toEqual([
      'around undefined undefined',
      ...['nested t1 ada', 'step t1 ada'],
      ...['apart t1 ada', 'step t1 ada'],
      'after undefined undefined',
    ]);
    expect(recorder.run('nested')).toMatchObject({ parent_run_id: around.id, tags: ['a'] });
    expect(recorder.run('apart')).toMatchObject({ tags: ['a'], extra: { metadata: { plan: 'free' } } });
  });

  test('yields to an inner call and to the options of a run', () => {
    const { recorder, seen } = record();
    withContext({ ...ids, tags: ['a'] }, () => {
      withContext({ threadId: 't2', tags: ['b'] }, () => traceable(() => step(), { name: 'inner', userId: 'bob' })());
      traceable(() => withContext({ tags: ['c'] }, step), { name: 'own', threadId: 't3' })();
    });
    expect(seen()).toEqual(['inner t2 bob', 'step t2 bob', 'own t3 ada', 'step t3 ada']);
    expect(recorder.runs.map(({ tags }) => tags?.join())).toEqual(['a,b', 'a,b', 'a', 'a,c']);
  });

  test('applies to runs with another exporter, under the redaction rules of that exporter', () => {
    const { seen } = record();
    const there = makeSink({
      payload: { ...makeSink().capture.payload, redaction: redact({ paths: ['metadata.plan'] }) },
    });
    withContext({ ...ids, metadata: { plan: 'free' } }, () => {
      startRun({ name: 'direct', exporter: there });
      traceable(() => startRun({ name: 'nested', exporter: there }), { name: 'here', metadata: { tenant: 'a' } })();
      withExporter(there, step);
    });
    expect(seen()).toEqual(['here t1 ada']);
    const metadata = { thread_id: 't1', user_id: 'ada', plan: '[Redacted]' };
    expect(there.records().map(({ extra }) => extra?.metadata)).toEqual([metadata, metadata, metadata]);
  });

  test('applies below a run from headers, but not below a run that started elsewhere', () => {
    const { seen } = record();
    const queued = startRun({ name: 'queued', userId: 'bob' });
    const remote = fromHeaders(toHeaders(startRun({ name: 'caller', userId: 'eve' })), { accept: ['metadata'] });
    withContext({ threadId: 't1' }, () => {
      withRun(remote, step);
      withRun(queued, step);
    });
    expect(seen()).toEqual(['queued undefined bob', 'step undefined bob', 'caller undefined eve', 'step t1 eve']);
  });

  test('reaches the runs of another process through headers, before other metadata', () => {
    const { seen } = record();
    const metadata = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`page${index}`, 1]));
    const headers = traceable(() => withContext(ids, () => toHeaders()), { name: 'caller', metadata })();
    withRun(fromHeaders(headers, { accept: ['metadata'] }), step);
    expect(seen()).toEqual(['caller undefined undefined', 'step t1 ada']);
  });

  test('applies to OpenTelemetry spans', async () => {
    const { tracer, recorder } = setUp();
    await withContext(ids, () => inSpan(tracer, 'span', () => inSpan(tracer, 'inner', () => step())));
    expect(recorder.runs.map(({ name }) => name).sort()).toEqual(['inner', 'span', 'step']);
    for (const { extra } of recorder.runs) expect(extra?.metadata).toMatchObject({ thread_id: 't1', user_id: 'ada' });
  });

  test('calls the function in any case', () => {
    const { recorder, seen } = record();
    const lines = logLines();
    const metadata = new Proxy({}, { ownKeys: () => expect.fail('trap') });
    for (const fields of [undefined, 'x', { userid: 'ada' }, { ...ids, metadata }] as ContextFields[])
      withContext(fields, step);
    expect(seen()).toEqual([...Array(3).fill('step undefined undefined'), 'step t1 ada']);
    expect(recorder.runs[0]).not.toHaveProperty('tags');
    expect(recorder.runs[0]?.extra).not.toHaveProperty('metadata');
    expect(lines).toContainEqual(expect.stringContaining('unknown option `userid` is ignored; use `userId`'));
    expect(() => withContext(ids, () => expect.fail('own error'))).toThrow('own error');
  });
});
