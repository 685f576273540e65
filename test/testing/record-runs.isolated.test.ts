import { describe, expect, onTestFinished, test } from 'vitest';
import { sizeOf } from '#src/payload/attachment.ts';
import { redact } from '#src/payload/redaction/redact.ts';
import { currentSink } from '#src/run/sink.ts';
import { startRun, withRun } from '#src/run/start-run.ts';
import { type RunRecorder, recordRuns } from '#src/testing.ts';
import { makeSink } from '../run/memory-sink.ts';
import { logLines } from '../support/log-lines.ts';

function recorder(): RunRecorder {
  const made = recordRuns();
  onTestFinished(() => made.stop());
  return made;
}

describe('recordRuns', () => {
  test('records each run as a service would receive it, also open runs', () => {
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

  test('returns parents before children, sorted by start', () => {
    const recorded = recorder();
    const [a, b] = [startRun({ name: 'a' }), startRun({ name: 'b' })];
    for (const run of [b, a, b]) run.child({ name: `below ${run.name}` });
    expect(recorded.runs.map(({ name }) => name)).toEqual(['a', 'below a', 'b', 'below b', 'below b']);
  });

  test('removes the runs on clear(), and continues', () => {
    const recorded = recorder();
    const open = startRun({ name: 'a' });
    recorded.clear();
    open.end();
    expect(recorded.runs).toEqual([]);
    startRun({ name: 'b' });
    expect(recorded.runs.map(({ name }) => name)).toEqual(['b']);
  });

  test('records only the runs of its exporter after stop()', () => {
    const recorded = recordRuns();
    recorded.stop();
    startRun({ name: 'elsewhere' });
    startRun({ name: 'here', exporter: recorded.exporter });
    expect(recorded.runs.map(({ name }) => name)).toEqual(['here']);
  });

  test('has an exporter that flushes and closes immediately', async () => {
    const { exporter } = recorder();
    startRun({ name: 'open' });
    expect(await exporter.flush()).toEqual({ ok: true, pending: 0 });
    expect(await exporter.close({ timeoutMs: 1 })).toEqual({ ok: true, pending: 0 });
  });

  test('records no run of a rejected trace', () => {
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
  test('apply as in an exporter', () => {
    using recorded = recordRuns({ project: 'evals', hideInputs: true, hideOutputs: true });
    startRun({ name: 'a', inputs: { secret: 1 } }).end({ secret: 2 });
    expect(recorded.runs).toMatchObject([{ name: 'a', session_name: 'evals' }]);
    expect(recorded.runs[0]).toMatchObject({ inputs: {}, outputs: {} });
    expect(JSON.stringify(recorded.runs)).not.toContain('secret');
  });

  test.each([
    [6, '[Truncated'],
    [7, '{"text":"abc"}'],
  ])('limit payloads: at %i characters, a key of 4 and a text of 3 are %s', (payloadCharacters, expected) => {
    using recorded = recordRuns({ limits: { payloadCharacters } });
    startRun({ name: 'a', inputs: { text: 'abc' } });
    expect(JSON.stringify(recorded.runs[0]?.inputs)).toContain(expected);
  });

  test.each([
    [2, undefined],
    [3, 3],
  ])('limit attachments: of 3 bytes at a limit of %i, %s are kept', (attachmentBytes, kept) => {
    const lines = logLines();
    using recorded = recordRuns({ limits: { attachmentBytes } });
    startRun({ name: 'a' }).attach('image', new Uint8Array(3), 'image/png');
    expect(recorded.run('a').attachments?.map(({ bytes }) => sizeOf(bytes))[0]).toBe(kept);
    expect(lines).toHaveLength(kept === undefined ? 1 : 0);
  });

  test.each([
    [{ hideInput: true }, /^Expected the options to contain only project, .*, got `hideInput`$/],
    [{ project: '' }, /^Expected `project` to be a project's name, or an object with its `id`, got ""$/],
    [{ hideInputs: 'yes' }, /^Expected `hideInputs` to be true or false, got "yes"$/],
    [{ limits: 5 }, /^Expected `limits` to be an object, got the number 5$/],
    [
      { limits: { payloadCharacters: 0 } },
      /^Expected `payloadCharacters` to be a whole number from 1, got the number 0$/,
    ],
    [{ limits: { lingerMs: 1 } }, /^Expected `limits` to contain only payloadCharacters, .*, got `lingerMs`$/],
    [null, /^Expected the options to be an object, got null$/],
  ])('are rejected by name: %j', (options, message) => {
    expect(() => recordRuns(options as never)).toThrow(
      expect.objectContaining({ code: 'RUNSPAN_INVALID_OPTION', message: expect.stringMatching(message) }),
    );
    expect(currentSink()).toBeUndefined();
  });

  test('mask names by default, or values by the rules of a redaction', () => {
    const inputs = { password: 'x', pin: '1234' };
    using recorded = recordRuns();
    startRun({ name: 'a', inputs });
    expect(recorded.runs[0]?.inputs).toEqual({ password: '[Redacted]', pin: '1234' });
    using other = recordRuns({ redact: redact({ keys: false, paths: ['inputs.pin'] }) });
    startRun({ name: 'b', inputs });
    expect(other.runs[0]?.inputs).toEqual({ password: 'x', pin: '[Redacted]' });
  });
});

describe('a recorded run', () => {
  test('has attachments only if some were attached', () => {
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
    [['a', 'b', 'a'], 'got 2\n\nRecorded:\n  a (chain)\n  b (chain)\n  a (chain)'],
  ])('is not found among %j', (names, ending) => {
    const recorded = recorder();
    for (const name of names) startRun({ name }).end();
    const message = `Expected one run named "a", ${ending}`;
    expect(() => recorded.run('a')).toThrow(expect.objectContaining({ code: 'RUNSPAN_RUN_NOT_FOUND', message }));
  });
});

describe('a recorder that stops', () => {
  test('stops at the end of a using block', () => {
    {
      using recorded = recordRuns();
      expect(currentSink()).toBe(recorded.exporter);
    }
    expect(currentSink()).toBeUndefined();
  });

  test('can stop twice, and in any order', () => {
    const earlier = recordRuns();
    const recorded = recordRuns();
    earlier.stop();
    expect(currentSink()).toBe(recorded.exporter);
    recorded.stop();
    recorded.stop();
    expect(currentSink()).toBeUndefined();
  });
});
