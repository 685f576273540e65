import type { Attributes, Histogram, Meter } from '@opentelemetry/api';
import { reportFailure } from '../base/guard.ts';
import { parsedJson, textOf } from '../payload/fields.ts';
import { SAME_CALL, USAGE } from '../run/calls/same-call.ts';
import { addRunMeter, type MeasuredRun } from '../run/run-meters.ts';
import { parseIsoTimestamp } from '../run/time.ts';
import { type ObserveOptions, oncePerMeter } from './meters.ts';
import { operationName } from './otlp/gen-ai.ts';
import { errorNameIn } from './otlp/run-to-span.ts';

/**
 * Records the metrics of OpenTelemetry's GenAI conventions for each model call, retrieval, tool and agent that ends:
 * durations in seconds, token counts, and the time to the first chunk of an answer (see `docs/opentelemetry.md`). Runs
 * that `sampleRate` or `sampler` leaves out count too, without their content. Nothing counts while tracing is off. Call
 * this function once, after you have set the meter provider. Call the returned function to stop. Never throws.
 */
export function observeRuns(options?: ObserveOptions): () => void {
  return start(options);
}

const start = oncePerMeter('observeRuns', (meter) => {
  const instruments = instrumentsOf(meter);
  return addRunMeter((run, startUs, endUs) => {
    try {
      measure(run, startUs, endUs, instruments);
    } catch (thrown) {
      reportFailure('observeRuns', thrown);
    }
  });
});

/** Bucket bounds that the conventions recommend: seconds of calls, seconds of agents, and tokens. */
const CALL_S = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const AGENT_S = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6];
const TOKENS = Array.from({ length: 14 }, (_, power) => 4 ** power);

type Instruments = ReturnType<typeof instrumentsOf>;

function instrumentsOf(meter: Meter) {
  const histogram = (name: string, description: string, unit = 's', bounds = CALL_S): Histogram =>
    meter.createHistogram(name, { unit, description, advice: { explicitBucketBoundaries: bounds } });
  return {
    call: histogram('gen_ai.client.operation.duration', 'GenAI operation duration.'),
    firstChunk: histogram('gen_ai.client.operation.time_to_first_chunk', 'Time to receive the first chunk.'),
    tokens: histogram('gen_ai.client.token.usage', 'Number of input and output tokens used.', '{token}', TOKENS),
    tool: histogram('gen_ai.execute_tool.duration', 'The duration of a single tool execution.'),
    agent: histogram('gen_ai.invoke_agent.duration', 'The duration of a single agent invocation.', 's', AGENT_S),
  };
}

function measure(run: MeasuredRun, startUs: number, endUs: number, instruments: Instruments): void {
  const { name, error, metadata } = run;
  const operation = operationName(run);
  const durationS = (endUs - startUs) / 1_000_000;
  const errorType = error === undefined ? undefined : { 'error.type': errorTypeIn(error) };
  if (operation === 'execute_tool') {
    if (metadata?.has(SAME_CALL) === true) return;
    const agent = textIn(run, 'gen_ai.agent.name');
    const ofAgent = agent === undefined ? undefined : { 'gen_ai.agent.name': agent };
    instruments.tool.record(durationS, { 'gen_ai.tool.name': name, ...ofAgent, ...errorType });
  } else if (operation !== undefined) {
    const attributes = attributesOf(run, operation);
    if (metadata?.has(SAME_CALL) !== true) {
      instruments.call.record(durationS, errorType === undefined ? attributes : { ...attributes, ...errorType });
      measureFirstChunk(run, startUs, attributes, instruments);
    }
    // If two records of a call have usage, the one with `SAME_CALL` has it under another key.
    measureTokens(run, attributes, instruments);
  } else if (AGENT_MARKS.some(([key, json]) => metadata?.get(key) === json)) {
    instruments.agent.record(durationS, { 'gen_ai.agent.name': name, ...errorType });
  }
}

/** A failed response has its status, as in `HTTP 429: slow down`. */
function errorTypeIn(error: string): string {
  return /^HTTP (\d{3})\b/.exec(error)?.[1] ?? errorNameIn(error) ?? '_OTHER';
}

/** The metadata by which the run of an agent's span is known, as JSON text. */
const AGENT_MARKS = [
  ['gen_ai.operation.name', '"invoke_agent"'],
  ['openinference.span.kind', '"AGENT"'],
  ['traceloop.span.kind', '"agent"'],
] as const;

const CALL_ATTRIBUTES = [
  ['ls_provider', 'gen_ai.provider.name'],
  ['ls_model_name', 'gen_ai.request.model'],
  ['response_model', 'gen_ai.response.model'],
] as const;

function attributesOf(run: MeasuredRun, operation: string): Attributes {
  const attributes: Attributes = { 'gen_ai.operation.name': operation };
  for (const [key, attribute] of CALL_ATTRIBUTES) {
    const value = textIn(run, key);
    if (value !== undefined) attributes[attribute] = value;
  }
  return attributes;
}

function textIn({ metadata }: MeasuredRun, key: string): string | undefined {
  return textOf(parsedJson(metadata?.get(key)));
}

/** Matches the first event of a streamed answer in the events of a run. */
const FIRST_CHUNK = /\{"name":"new_token","time":"([^"]+)"/;

function measureFirstChunk({ events }: MeasuredRun, startUs: number, attributes: Attributes, of: Instruments): void {
  const time = events && FIRST_CHUNK.exec(events)?.[1];
  const us = time && parseIsoTimestamp(time);
  if (us) of.firstChunk.record(Math.max(0, us - startUs) / 1_000_000, attributes);
}

/** Matches token counts in the JSON text of a usage. Parsing the text takes three times as long. */
const TOKENS_OF = { input: /"input_tokens":(\d+)/, output: /"output_tokens":(\d+)/ };

function measureTokens({ metadata }: MeasuredRun, attributes: Attributes, { tokens }: Instruments): void {
  const usage = metadata?.get(USAGE) ?? '';
  for (const type of ['input', 'output'] as const) {
    const count = TOKENS_OF[type].exec(usage)?.[1];
    if (count !== undefined) tokens.record(Number(count), { ...attributes, 'gen_ai.token.type': type });
  }
}
