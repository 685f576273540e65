import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import OpenAI from 'openai';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { wrapAISDK } from '../src/ai.ts';
import { type ConfigureOptions, startRun, type TraceableOptions, traceable, withRun } from '../src/index.ts';
import { RunspanCallbackHandler } from '../src/langchain.ts';
import { wrapOpenAI } from '../src/openai.ts';
import { RunSpanProcessor } from '../src/otel.ts';
import { recordRuns } from '../src/testing.ts';
import { environmentOf } from './support/environment.ts';
import { ingestServer } from './support/ingest-server.ts';
import { readJsonParts } from './support/multipart-reader.ts';
import { told } from './support/told.ts';

const hide = (): object => ({});
const ASKED = 'canary-question';
const ANSWERED = 'canary-answer';

/** Options of other libraries, whether inputs and outputs are still recorded, and the runspan option named in the log line. */
const HIDING: readonly [object, boolean, boolean, string][] = [
  [{ processInputs: hide }, false, true, '`inputs`'],
  [{ processOutputs: hide }, true, false, '`outputs`'],
  [{ hideInputs: hide }, false, true, '`inputs`'],
  [{ hideOutputs: hide }, true, false, '`outputs`'],
  [{ hideInputs: true }, false, true, '`inputs`'],
  [{ mask: hide }, false, false, '`redact`'],
  [{ anonymizer: hide }, false, false, '`redact`'],
  [{ processInputs: hide, inputs: (args: unknown[]) => ({ args }) }, false, true, '`inputs`'],
  [{ redact: {} }, false, false, '`redact` of `configure`'],
  [{ process_inputs: hide }, false, true, '`inputs`'],
  [{ process_outputs: hide }, true, false, '`outputs`'],
  [{ hide_inputs: true }, false, true, '`inputs`'],
  [{ hide_outputs: true }, true, false, '`outputs`'],
  [{ hideInput: true }, false, true, '`inputs`'],
  [{ hideOutput: true }, true, false, '`outputs`'],
  [{ captureInput: false }, false, true, '`inputs`'],
  [{ recordOutputs: false }, true, false, '`outputs`'],
];

function recorder() {
  const made = recordRuns();
  onTestFinished(() => made.stop());
  return made;
}

/** Whether the inputs and the outputs of all runs contain the question and the answer. */
function payloads(runs: readonly object[]): [inputs: boolean, outputs: boolean] {
  const text = JSON.stringify(runs);
  return [text.includes(ASKED), text.includes(ANSWERED)];
}

beforeEach(() => environmentOf());

describe('an option that hides payloads in another library hides them here', () => {
  test.each(HIDING)('of `traceable`: %j %#', async (options, inputs, outputs, ours) => {
    const lines = told();
    const recorded = recorder();
    const asking = options as TraceableOptions;
    traceable((_question: string) => ANSWERED, { ...asking, name: 'sync' })(ASKED);
    await traceable(async (_question: string) => ANSWERED, { ...asking, name: 'async' })(ASKED);
    const chunks = traceable(
      function* (_question: string) {
        yield ANSWERED;
      },
      { ...asking, name: 'chunks' },
    );
    for (const _ of chunks(ASKED));
    expect(recorded.runs).toHaveLength(3);
    expect(payloads(recorded.runs)).toEqual([inputs, outputs]);
    const [name] = Object.keys(options);
    expect(lines).toEqual([expect.stringMatching(new RegExp(`unknown option \`${name}\`.*${ours}`))]);
  });

  test.each(HIDING)('of `startRun`: %j %#', ({ inputs: _, ...options }: { inputs?: unknown }, inputs, outputs) => {
    const lines = told();
    const recorded = recorder();
    const run = startRun({ name: 'ask', inputs: { question: ASKED }, ...(options as object) });
    run.set({ inputs: { question: ASKED }, outputs: { answer: ANSWERED } });
    run.end({ answer: ANSWERED });
    expect(recorded.runs).toHaveLength(1);
    expect(payloads(recorded.runs)).toEqual([inputs, outputs]);
    expect(lines).toEqual([expect.stringContaining('`redact`')]);
  });

  test.each(HIDING)('of `with`: %j %#', ({ inputs: _, ...options }: { inputs?: unknown }, inputs, outputs) => {
    const lines = told();
    const recorded = recorder();
    traceable((_question: string) => ANSWERED, { name: 'ask' }).with(options as object)(ASKED);
    expect(payloads(recorded.runs)).toEqual([inputs, outputs]);
    expect(lines).toEqual([expect.stringContaining('`redact`')]);
  });

  test.each(HIDING)(
    'of `wrapOpenAI`: %j %#',
    async ({ inputs: _, ...options }: { inputs?: unknown }, inputs, outputs) => {
      const lines = told();
      const recorded = recorder();
      const answer = {
        id: '1',
        object: 'chat.completion',
        model: 'm',
        choices: [{ index: 0, message: { content: ANSWERED } }],
      };
      const client = new OpenAI({ apiKey: 'k', fetch: async () => Response.json(answer) });
      const messages = [{ role: 'user' as const, content: ASKED }];
      await wrapOpenAI(client, options as object).chat.completions.create({ model: 'm', messages });
      await vi.waitFor(() => expect(recorded.runs[0]).toHaveProperty('end_time'));
      expect(payloads(recorded.runs)).toEqual([inputs, outputs]);
      expect(lines).toEqual([expect.stringContaining('`redact`')]);
    },
  );

  test.each(HIDING)(
    'of `RunspanCallbackHandler`: %j %#',
    ({ inputs: _, ...options }: { inputs?: unknown }, inputs, outputs) => {
      const lines = told();
      const recorded = recorder();
      const handler = new RunspanCallbackHandler(options as object);
      handler.handleChainStart({}, { question: ASKED }, 'a', undefined, [], {}, 'chain', 'ask');
      handler.handleChainEnd({ answer: ANSWERED }, 'a');
      expect(recorded.runs).toHaveLength(1);
      expect(payloads(recorded.runs)).toEqual([inputs, outputs]);
      expect(lines).toEqual([expect.stringContaining('`redact`')]);
    },
  );

  const ofConfigure: typeof HIDING = [
    [{ processInputs: hide }, false, true, '`redact`'],
    [{ process_outputs: hide }, true, false, '`redact`'],
    [{ mask: hide }, false, false, '`redact`'],
    [{ anonymizer: hide }, false, false, '`redact`'],
    [{ hide_inputs: true }, false, true, '`hideInputs`'],
    [{ hideOutput: true }, true, false, '`hideOutputs`'],
    [{ tracingEnabled: false }, false, false, '`tracing`'],
  ];
  test.each(ofConfigure)('of `configure`: %j', async (options, inputs, outputs, ours) => {
    await using server = await ingestServer();
    vi.resetModules();
    const runspan = await import('../src/index.ts');
    const lines: string[] = [];
    const log: ConfigureOptions['log'] = (level, line) => level !== 'debug' && void lines.push(line);
    const exporter = runspan.configure({ endpoint: server.url, log, ...options });
    runspan.startRun({ name: 'ask', inputs: { question: ASKED } }).end({ answer: ANSWERED });
    await exporter.close();
    const sent = server.received.flatMap((request) => [...readJsonParts(request).values()]);
    expect(sent).not.toEqual([]);
    expect(payloads(sent)).toEqual([inputs, outputs]);
    expect(lines).toEqual([expect.stringContaining(ours)]);
  });

  test.each(HIDING)(
    'of `RunSpanProcessor`: %j %#',
    ({ inputs: _, ...options }: { inputs?: unknown }, inputs, outputs) => {
      const lines = told();
      const recorded = recorder();
      const spanProcessors = [new RunSpanProcessor(options as object)];
      const span = new BasicTracerProvider({ spanProcessors }).getTracer('t').startSpan('ask', {
        attributes: { 'input.value': ASKED },
      });
      span.addEvent('gen_ai.user.message', { content: ASKED });
      span.setAttribute('output.value', ANSWERED);
      span.end();
      expect(recorded.runs).toHaveLength(1);
      expect(payloads(recorded.runs)).toEqual([inputs, outputs]);
      expect(lines).toEqual([expect.stringContaining('`redact`')]);
    },
  );

  test('leaves the AI SDK untraced, since `wrapAISDK` has no options', () => {
    const lines = told();
    const sdk = { generateText: async () => ({}) };
    expect((wrapAISDK as (ai: object, options: object) => object)(sdk, { processInputs: hide })).toBe(sdk);
    expect(lines).toEqual([expect.stringContaining('`redact`')]);
  });

  test('`tracingEnabled: false` leaves the calls of a function untraced', () => {
    const lines = told();
    const recorded = recorder();
    const options = { name: 'ask', tracingEnabled: false };
    expect(traceable((_: string) => ANSWERED, options as object)(ASKED)).toBe(ANSWERED);
    expect(recorded.runs).toEqual([]);
    expect(lines).toEqual([expect.stringMatching(/unknown option `tracingEnabled`, .*not traced; use `enabled`/)]);
  });

  test('`tracingEnabled: false` of a run hides its payloads', () => {
    const lines = told();
    const recorded = recorder();
    const options = { name: 'ask', inputs: { question: ASKED }, tracingEnabled: false };
    startRun(options).end({ answer: ANSWERED });
    expect(payloads(recorded.runs)).toEqual([false, false]);
    expect(lines).toEqual([expect.stringMatching(/`tracingEnabled`, so no .*; use `enabled` of `traceable`/)]);
  });

  test('does not hide the payloads of runs below', () => {
    const recorded = recorder();
    told();
    const options = { name: 'outer', processInputs: hide, mask: hide };
    withRun(startRun(options), () => traceable((_: string) => ANSWERED, { name: 'inner' })(ASKED));
    expect(payloads(recorded.runs)).toEqual([true, true]);
  });

  test.each([{ processInputs: undefined }, { hideInputs: false }, { mask: null }, { captureInput: true }])(
    'unless it is off: %j',
    (options) => {
      const recorded = recorder();
      told();
      traceable((_: string) => ANSWERED, { name: 'ask', ...(options as object) })(ASKED);
      expect(payloads(recorded.runs)).toEqual([true, true]);
    },
  );

  test('even if its getter throws', () => {
    const recorded = recorder();
    const lines = told();
    const options = {
      name: 'ask',
      get processInputs(): never {
        throw new Error('gone');
      },
    };
    traceable((_: string) => ANSWERED, options as object)(ASKED);
    expect(payloads(recorded.runs)).toEqual([false, true]);
    expect(lines).toHaveLength(1);
  });
});

test.each([
  ['run_type', 'llm', 'runType'],
  ['project_name', 'shop', 'project'],
  ['session_name', 'shop', 'project'],
  ['tracingEnabled', true, 'enabled'],
  ['aggregator', () => 1, 'aggregate'],
  ['client', {}, 'exporter'],
])('the option `%s` of another library is ignored, and one log line names the runspan option', (name, value, ours) => {
  const lines = told();
  const recorded = recorder();
  expect(traceable(() => 1, { name: 'ask', [name]: value } as object)()).toBe(1);
  expect(recorded.runs).toMatchObject([{ name: 'ask', run_type: 'chain', session_name: 'default' }]);
  expect(lines).toEqual([`warn: traceable: unknown option \`${name}\`; use \`${ours}\`.`]);
});

test.each([
  ['apiUrl', 'endpoint'],
  ['project_name', 'project'],
  ['tracingEnabled', 'tracing'],
])('the option `%s` of `configure` is ignored, and one log line names the runspan option', async (name, ours) => {
  const runspan = await import('../src/index.ts');
  const lines: string[] = [];
  runspan.createExporter({ [name]: 'x', log: (_, line) => lines.push(line) } as ConfigureOptions);
  expect(lines).toContainEqual(`configuration: unknown option \`${name}\`; use \`${ours}\`.`);
});
