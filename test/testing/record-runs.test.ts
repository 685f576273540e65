import { describe, expect, onTestFinished, test } from 'vitest';
import { sizeOf } from '../../src/payload/attachment.ts';
import { redact } from '../../src/payload/redact.ts';
import type { RunRecord } from '../../src/run/record.ts';
import { currentSink } from '../../src/run/sink.ts';
import { startRun, withRun } from '../../src/run/start-run.ts';
import { type RunRecorder, recordRuns } from '../../src/testing.ts';
import { makeSink } from '../run/memory-sink.ts';
import { told } from '../support/told.ts';

/** Records until the test has finished. */
function recorder(): RunRecorder {
  const made = recordRuns();
  onTestFinished(() => made.stop());
  return made;
}

describe('recordRuns', () => {
  test('has every run as the service would get it, those still open too', () => {
    const recorded = recorder();
    const run = startRun({ name: 'outer', inputs: { q: 1 }, tags: ['a'] });
    withRun(run, () => startRun({ name: 'inner', runType: 'tool' }).end({ a: 2 }));
    expect(recorded.runs).toMatchObject([
      { id: run.id, name: 'outer', run_type: 'chain', inputs: { q: 1 }, tags: ['a'], session_name: 'default' },
      { parent_run_id: run.id, trace_id: run.id, name: 'inner', run_type: 'tool', inputs: {}, outputs: { a: 2 } },
    ]);
    expect(recorded.runs.map((each) => 'end_time' in each)).toEqual([false, true]);
    run.fail(new Error('no'));
    expect(recorded.runs[0]).toMatchObject({
      error: expect.stringMatching(/^Error: no\n/),
      end_time: expect.any(String),
    });
  });

  test('has parents before children and elders before the younger, whatever the order of their starts', () => {
    const recorded = recorder();
    const [a, b] = [startRun({ name: 'a' }), startRun({ name: 'b' })];
    for (const run of [b, a, b]) run.child({ name: `below ${run.name}` });
    expect(recorded.runs.map(({ name }) => name)).toEqual(['a', 'below a', 'b', 'below b', 'below b']);
  });

  test('gives records that are copies', () => {
    const recorded = recorder();
    startRun({ name: 'a', inputs: { list: [1] } });
    (recorded.runs[0] as RunRecord).inputs.list = 'changed';
    expect(recorded.runs[0]?.inputs).toEqual({ list: [1] });
  });

  test('forgets what there was when it is cleared, and goes on', () => {
    const recorded = recorder();
    const open = startRun({ name: 'a' });
    recorded.clear();
    open.end();
    expect(recorded.runs).toEqual([]);
    startRun({ name: 'b' });
    expect(recorded.runs.map(({ name }) => name)).toEqual(['b']);
  });

  test('records what is given its exporter alone, once it has stopped', () => {
    const recorded = recordRuns();
    recorded.stop();
    startRun({ name: 'elsewhere' });
    startRun({ name: 'here', exporter: recorded.exporter });
    expect(recorded.runs.map(({ name }) => name)).toEqual(['here']);
  });

  test('never has to be waited for', async () => {
    const { exporter } = recorder();
    startRun({ name: 'open' });
    expect(await exporter.flush()).toEqual({ ok: true, pending: 0 });
    expect(await exporter.close({ timeoutMs: 1 })).toEqual({ ok: true, pending: 0 });
  });

  test('takes no run of a trace that was refused', () => {
    const recorded = recorder();
    const refused = startRun({ name: 'refused', exporter: makeSink({}, () => true) });
    const child = refused.child({ name: 'below', exporter: recorded.exporter });
    expect(recorded.runs).toEqual([]);
    expect(child.isOpen).toBe(false);
    child.child({ name: 'further below' });
    expect(recorded.runs).toEqual([]);
  });
});

describe('options of recordRuns', () => {
  test('give the runs as an exporter with the same options would send them', () => {
    using recorded = recordRuns({ project: 'evals', hideInputs: true, hideOutputs: true });
    startRun({ name: 'a', inputs: { secret: 1 } }).end({ secret: 2 });
    expect(recorded.runs).toMatchObject([{ name: 'a', session_name: 'evals' }]);
    expect(recorded.runs[0]).toMatchObject({ inputs: {}, outputs: {} });
    expect(JSON.stringify(recorded.runs)).not.toContain('secret');
  });

  test.each([
    [2, '[Truncated'],
    [3, '{"list":[[1]]}'],
    [4, '{"list":[[1]]}'],
  ])('bound payloads: at depth %i a payload of depth 3 is %s', (payloadDepth, expected) => {
    using recorded = recordRuns({ limits: { payloadDepth } });
    startRun({ name: 'a', inputs: { list: [[1]] } });
    expect(JSON.stringify(recorded.runs[0]?.inputs)).toContain(expected);
  });

  test.each([
    [2, undefined],
    [3, 3],
    [4, 3],
  ])('bound attachments: of 3 bytes at a limit of %i, %s are kept', (attachmentBytes, kept) => {
    const lines = told();
    using recorded = recordRuns({ limits: { attachmentBytes } });
    startRun({ name: 'a' }).attach('image', new Uint8Array(3), 'image/png');
    expect(recorded.run('a').attachments?.map(({ bytes }) => sizeOf(bytes))[0]).toBe(kept);
    expect(lines).toHaveLength(kept === undefined ? 1 : 0);
  });

  test.each([
    [{ hideInput: true }, /^Expected the options to have no more than project, .*, got `hideInput`$/],
    [{ project: '' }, /^Expected `project` to be text, got ""$/],
    [{ hideInputs: 'yes' }, /^Expected `hideInputs` to be true or false, got "yes"$/],
    [{ hideOutputs: 1 }, /^Expected `hideOutputs` to be true or false, got the number 1$/],
    [{ limits: 5 }, /^Expected `limits` to be an object, got the number 5$/],
    [{ limits: { payloadBytes: 0 } }, /^Expected `payloadBytes` to be a whole number from 1, got the number 0$/],
    [{ limits: { lingerMs: 1 } }, /^Expected `limits` to have no more than payloadDepth, .*, got `lingerMs`$/],
    [null, /^Expected the options to be an object, got null$/],
  ])('are refused by name: %j', (options, message) => {
    expect(() => recordRuns(options as never)).toThrow(
      expect.objectContaining({ code: 'RUNSPAN_INVALID_OPTION', message: expect.stringMatching(message) }),
    );
    expect(currentSink()).toBeUndefined();
  });
});

describe('a recorded run', () => {
  test('has its attachments beside it, or no such field', () => {
    const recorded = recorder();
    const bytes = new Uint8Array([1, 2]);
    const run = startRun({ name: 'with' });
    run.attach('image', bytes, 'image/png');
    bytes[0] = 9;
    startRun({ name: 'without' });
    expect(recorded.run('with').attachments).toEqual([
      { name: 'image', bytes: new Uint8Array([1, 2]), mimeType: 'image/png' },
    ]);
    expect(recorded.run('without')).not.toHaveProperty('attachments');
  });

  test.each([
    [[], 'got none\n\nRecorded:\n  nothing'],
    [['b'], 'got none\n\nRecorded:\n  b (chain)'],
    [['a', 'b', 'a'], 'got 2\n\nRecorded:\n  a (chain)\n  b (chain)\n  a (chain)'],
  ])('is asked for in vain among %j', (names, ending) => {
    const recorded = recorder();
    for (const name of names) startRun({ name }).end();
    const message = `Expected one run named "a", ${ending}`;
    expect(() => recorded.run('a')).toThrow(expect.objectContaining({ code: 'RUNSPAN_RUN_NOT_FOUND', message }));
  });
});

describe('a recorder that stops', () => {
  test('with its using block does the same', () => {
    {
      using recorded = recordRuns();
      expect(currentSink()).toBe(recorded.exporter);
    }
    expect(currentSink()).toBeUndefined();
  });

  test('twice, or before one that started earlier, harms nothing', () => {
    const earlier = recordRuns();
    const recorded = recordRuns();
    earlier.stop();
    expect(currentSink()).toBe(recorded.exporter);
    recorded.stop();
    recorded.stop();
    expect(currentSink()).toBeUndefined();
  });
});

describe('what is hidden', () => {
  test('is what names say, or what a redaction says', () => {
    const recorded = recorder();
    startRun({ name: 'a', inputs: { password: 'x', pin: '1234' } });
    expect(recorded.runs[0]?.inputs).toEqual({ password: '[Redacted]', pin: '1234' });
    using other = recordRuns({ redact: redact({ keys: false, paths: ['inputs.pin'] }) });
    startRun({ name: 'b', inputs: { password: 'x', pin: '1234' } });
    expect(other.runs[0]?.inputs).toEqual({ password: 'x', pin: '[Redacted]' });
  });
});
