import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import { beforeEach, describe, expect, test } from 'vitest';
import { type ConfigureOptions, createExporter, startRun, traceable, withRun } from '#src/index.ts';
import { RunSpanProcessor } from '#src/otel.ts';
import { record } from './instrument/recorder.ts';
import { environmentOf } from './support/environment.ts';
import { forgetPackage } from './support/fresh-copy.ts';
import { ingestServer } from './support/ingest-server.ts';
import { logLines } from './support/log-lines.ts';
import { readJsonParts } from './support/multipart-reader.ts';

const hide = (): object => ({});
const ASKED = 'canary-question';
const ANSWERED = 'canary-answer';

/** Options of other libraries, and whether inputs and outputs are still recorded. */
const HIDING: readonly [object, boolean, boolean][] = [
  [{ processInputs: hide }, false, true],
  [{ processOutputs: hide }, true, false],
  [{ hideInputs: hide }, false, true],
  [{ hideOutputs: hide }, true, false],
  [{ hideInputs: true }, false, true],
  [{ mask: hide }, false, false],
  [{ anonymizer: hide }, false, false],
  [{ redact: {} }, false, false],
  [{ process_inputs: hide }, false, true],
  [{ process_outputs: hide }, true, false],
  [{ hide_inputs: true }, false, true],
  [{ hide_outputs: true }, true, false],
  [{ hideInput: true }, false, true],
  [{ hideOutput: true }, true, false],
  [{ captureInput: false }, false, true],
  [{ recordOutputs: false }, true, false],
];

const RECORDING: Readonly<Record<string, (options: object) => unknown>> = {
  traceable: (options) => traceable((_question: string) => ANSWERED, { ...options, name: 'sync' })(ASKED),
  'traceable with a promise': (options) => traceable(async (_question: string) => ANSWERED, options)(ASKED),
  'traceable with chunks': (options) => {
    const chunks = function* (_question: string) {
      yield ANSWERED;
    };
    return [...traceable(chunks, options)(ASKED)];
  },
  startRun: (options) => {
    const run = startRun({ name: 'ask', inputs: { question: ASKED }, ...options });
    run.set({ inputs: { question: ASKED }, outputs: { answer: ANSWERED } });
    run.end({ answer: ANSWERED });
  },
  with: (options) => traceable((_question: string) => ANSWERED, { name: 'ask' }).with(options)(ASKED),
  RunSpanProcessor: (options) => {
    const provider = new BasicTracerProvider({
      spanProcessors: [new RunSpanProcessor({ shouldExport: 'all', ...options })],
    });
    const span = provider.getTracer('t').startSpan('ask', { attributes: { 'input.value': ASKED } });
    span.addEvent('gen_ai.user.message', { content: ASKED });
    span.setAttribute('output.value', ANSWERED);
    span.end();
  },
};

/** Whether the inputs and the outputs of all runs contain the question and the answer. */
function payloads(runs: readonly object[]): [inputs: boolean, outputs: boolean] {
  const text = JSON.stringify(runs);
  return [text.includes(ASKED), text.includes(ANSWERED)];
}

beforeEach(() => environmentOf());

describe('an option that hides payloads in another library', () => {
  test.each(Object.entries(RECORDING))('hides them in `%s`, and one line names the option', async (_, recordOne) => {
    for (const [options, inputs, outputs] of HIDING) {
      const lines = logLines();
      const recorded = record();
      await recordOne(options);
      await expect.poll(() => recorded.runs[0]).toHaveProperty('end_time');
      expect(recorded.runs).toHaveLength(1);
      expect(payloads(recorded.runs), JSON.stringify(options)).toEqual([inputs, outputs]);
      expect(lines).toEqual([expect.stringMatching(new RegExp(`\`${Object.keys(options)[0]}\`.*\`redact\``))]);
      recorded.stop();
    }
  });

  test.each<[object, boolean, boolean]>([
    [{ processInputs: hide }, false, true],
    [{ process_outputs: hide }, true, false],
    [{ mask: hide }, false, false],
    [{ anonymizer: hide }, false, false],
    [{ hide_inputs: true }, false, true],
    [{ hideOutput: true }, true, false],
    [{ limits: { hideInputs: true } }, false, true],
  ])('hides them in all runs of `configure`: %j', async (options, inputs, outputs) => {
    await using server = await ingestServer();
    forgetPackage();
    const runspan = await import('#src/index.ts');
    const lines: string[] = [];
    const log: ConfigureOptions['log'] = (level, line) => level !== 'debug' && void lines.push(line);
    const exporter = runspan.configure({ endpoint: server.url, log, ...options });
    runspan.startRun({ name: 'ask', inputs: { question: ASKED } }).end({ answer: ANSWERED });
    await exporter.close();
    const sent = server.received.flatMap((request) => [...readJsonParts(request).values()]);
    expect(sent).not.toEqual([]);
    expect(payloads(sent)).toEqual([inputs, outputs]);
    expect(lines).toEqual([expect.stringContaining('`redact`')]);
  });

  test.each(['tracingEnabled', 'enabled'])('`createExporter({ %s: false })` turns tracing off', (name) => {
    const lines = logLines();
    const exporter = createExporter({ endpoint: 'http://127.0.0.1:9', [name]: false });
    startRun({ name: 'ask', exporter }).end();
    expect(exporter.stats().created).toBe(0);
    const line = `unknown option \`${name}\` leaves the calls untraced; use \`tracing\``;
    expect(lines).toContain(`warn: configuration: ${line}.`);
  });

  test('does not hide the payloads of runs below', () => {
    const recorded = record();
    logLines();
    const options = { name: 'outer', processInputs: hide, mask: hide };
    withRun(startRun(options), () => traceable((_: string) => ANSWERED, { name: 'inner' })(ASKED));
    expect(payloads(recorded.runs)).toEqual([true, true]);
  });

  test.each<[object, boolean]>([
    [{ processInputs: undefined }, true],
    [{ hideInputs: false }, true],
    [{ mask: null }, true],
    [{ captureInput: true }, true],
    [Object.defineProperty({}, 'processInputs', { enumerable: true, get: () => expect.fail('gone') }), false],
  ])('hides nothing if it is off, and the inputs if it cannot be read: %#', (options, isRecorded) => {
    const recorded = record();
    logLines();
    traceable(
      (_: string) => ANSWERED,
      Object.defineProperties({ name: 'ask' }, Object.getOwnPropertyDescriptors(options)),
    )(ASKED);
    expect(payloads(recorded.runs)).toEqual([isRecorded, true]);
  });
});

test('`tracingEnabled: false` leaves calls untraced and hides the payloads of a run', () => {
  const lines = logLines();
  const recorded = record();
  const options = { name: 'ask', inputs: { question: ASKED }, tracingEnabled: false };
  expect(traceable((_: string) => ANSWERED, { tracingEnabled: false } as object)(ASKED)).toBe(ANSWERED);
  expect(recorded.runs).toEqual([]);
  startRun(options).end({ answer: ANSWERED });
  expect(payloads(recorded.runs)).toEqual([false, false]);
  expect(lines).toEqual([
    expect.stringContaining('traceable: unknown option `tracingEnabled` leaves the calls untraced; use `enabled`'),
    expect.stringContaining('startRun: unknown option `tracingEnabled` hides'),
  ]);
});

test.each([
  ['run_type', 'llm', '; use `runType`'],
  ['referenceExampleID', '018f0000-0000-7000-8000-000000000005', '; use `referenceExampleId`'],
  ['on_end', () => {}, '; use `onEnd`'],
  ['project_name', 'shop', ''],
  ['tracingEnabled', true, ''],
  ['aggregator', () => 1, '; use `aggregate`'],
])('the option `%s` of another library is ignored, and one log line names a similar option', (name, value, ours) => {
  const lines = logLines();
  const recorded = record();
  expect(traceable(() => 1, { name: 'ask', [name]: value } as object)()).toBe(1);
  expect(recorded.runs).toMatchObject([{ name: 'ask', run_type: 'chain', session_name: 'default' }]);
  expect(lines).toEqual([`warn: traceable: unknown option \`${name}\` is ignored${ours}.`]);
});

test('the option of another library for `configure` is ignored, and one log line names a similar option', async () => {
  const runspan = await import('#src/index.ts');
  const lines: string[] = [];
  runspan.createExporter({ api_key: 'x', log: (_, line) => lines.push(line) } as ConfigureOptions);
  expect(lines).toContainEqual('configuration: unknown option `api_key` is ignored; use `apiKey`.');
});
