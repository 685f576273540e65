import { guard } from '../../base/guard.ts';
import { observedStream } from '../../instrument/results/observed-stream.ts';
import { abandonment, interceptOwn, type Watched } from '../../instrument/results/observer.ts';
import { type Fields, fieldsOf, listOf, parsedJson, textOf } from '../../payload/fields.ts';
import { nodeModule } from '../../platform/node.ts';
import { prepareRun } from '../../run/begin.ts';
import { isCallType } from '../../run/calls/same-call.ts';
import { areSpansRecorded, bindContext, currentContext } from '../../run/context/current.ts';
import { sinkOf } from '../../run/context/inherited.ts';
import type { RunType } from '../../run/record.ts';
import { beginRun, type CallDescription, type Run } from '../../run/run.ts';
import { currentRun } from '../../run/start-run.ts';
import { AnswerStream, endWithAnswer } from '../answer-stream.ts';
import { generatedAnswer, modelReader, operationReader, outputsOfAnswer } from './answer.ts';
import { describeExecution, describeModelCall, describeOperation, hidingOf } from './calls.ts';
import { completeEmbedding } from './model.ts';
import { leaveToWrapper } from './operation.ts';

const CHANNEL = 'ai:telemetry';

/** A call that the AI SDK publishes. The SDK adds the result or the error when the call ends. */
interface Message {
  readonly type: string;
  readonly event: Fields;
  /** Undefined for `streamText`, and if the call has `recordInputs: false` or `recordOutputs: false`. */
  readonly result?: unknown;
  readonly error?: unknown;
}

type Outcome = Pick<Message, 'result' | 'error'>;

interface Published {
  /** The run of the call. Calls inside the call are below it. */
  readonly run: Run;
  end(outcome: Outcome): void;
}

/**
 * Records the calls that version 7 of the AI SDK publishes on a diagnostics channel, also if a bundle contains the SDK.
 * Calls of functions from `wrapAISDK` are left to the wrapper, because the SDK publishes less than the wrapper knows.
 */
export function recordChannel(): void {
  const { start, asyncEnd } = nodeModule('node:diagnostics_channel').tracingChannel(CHANNEL);
  const published = new WeakMap<object, Published>();
  bindContext(start, (message) => {
    const call = begin(message as Message);
    if (call !== undefined) published.set(message as Message, call);
    return call?.run.context;
  });
  asyncEnd.subscribe((message) => guard(CHANNEL, () => published.get(message as object)?.end(message as Message)));
}

const OPERATIONS: readonly string[] = [
  ...['generateText', 'streamText', 'embed', 'embedMany', 'rerank', 'generateSpeech', 'transcribe'],
];

/** The runs of published operations, and for each `streamText` its text. */
const operations = new WeakMap<Run, StreamedText | undefined>();

function begin(message: Message): Published | undefined {
  const { type, event } = message;
  const around = currentRun();
  if (OPERATIONS.includes(type)) return leaveToWrapper(around) ? undefined : beginOperation(message);
  if (around === undefined || !operations.has(around)) return undefined;
  if (type === 'languageModelCall') return beginModelCall(event, operations.get(around));
  return type === 'executeTool' ? beginTool(event) : undefined;
}

function beginOperation(message: Message): Published | undefined {
  const { type, event } = message;
  const integrations = listOf((globalThis as Fields).AI_SDK_TELEMETRY_INTEGRATIONS);
  // An integration with a tracer emits spans, which are recorded instead.
  if (areSpansRecorded() && integrations.some((one) => fieldsOf(one).tracer !== undefined)) return undefined;
  const run = start('chain', { ...describeOperation(operationOptions(event)), name: type });
  if (run === undefined) return undefined;
  const text = type === 'streamText' ? new StreamedText(run) : undefined;
  operations.set(run, text);
  if (text !== undefined && run.isOpen) abandonment.watch(message, text);
  if (type === 'embed' || type === 'embedMany') return withEmbedding(run, event);
  return text ?? { run, end: (outcome) => endOperation(run, outcome) };
}

function endOperation(run: Run, outcome: Outcome): void {
  endWith(run, outcome, (result) => run.end(guard(CHANNEL, () => outputsOfAnswer(result))));
}

/** Returns the options that the application has passed, as far as the SDK publishes them. */
function operationOptions(event: Fields): Fields {
  const { messages, value, maxRetries } = event;
  const [message, ...others] = listOf(messages).map(fieldsOf);
  // The SDK converts a prompt to one message, and adds the default of `maxRetries`.
  const prompt = others.length === 0 && message?.role === 'user' ? textOf(message.content) : undefined;
  return {
    ...event,
    ...(prompt !== undefined && { prompt, messages: undefined }),
    ...(Array.isArray(value) && { values: value, value: undefined }),
    ...(maxRetries === 2 && { maxRetries: undefined }),
    model: event.modelId,
    telemetry: event,
  };
}

/** Adds the run of the model call, which the SDK does not publish for embeddings. */
function withEmbedding(operation: Run, event: Fields): Published {
  const options = { values: [event.value].flat() };
  const description = { ...describeModelCall(event, 'embedding', options), hiding: hidingOf(event) };
  const call = start('embedding', description, operation.context);
  return {
    run: call ?? operation,
    end(outcome) {
      if (call !== undefined) {
        endWith(call, outcome, (result) => {
          const { embedding, embeddings = [embedding] } = result;
          completeEmbedding(call, { ...result, embeddings });
        });
      }
      endOperation(operation, outcome);
    },
  };
}

function beginModelCall(event: Fields, text: StreamedText | undefined): Published | undefined {
  const { instructions, messages } = event;
  const system = typeof instructions === 'string' ? { role: 'system', content: instructions } : instructions;
  const prompt = [...(system === undefined ? [] : [system].flat()), ...listOf(messages)];
  const description = describeModelCall(event, 'chat', { ...event, prompt });
  const run = start('llm', { ...description, hiding: hidingOf(event) });
  if (run === undefined) return undefined;
  const end = (outcome: Outcome): void => {
    if (text !== undefined) text.error = outcome.error;
    endWith(run, outcome, (result) => {
      const { stream } = result;
      if (!(stream instanceof ReadableStream)) endWithAnswer(run, () => generatedAnswer(result));
      else if (text?.observe(stream, run) !== true) run.end();
    });
  };
  return { run, end };
}

function beginTool(event: Fields): Published | undefined {
  const { toolName, toolCallId, input } = fieldsOf(event.toolCall);
  const name = textOf(toolName) ?? 'tool';
  const run = start('tool', { ...describeExecution(input, { toolCallId }, hidingOf(event)), name });
  if (run === undefined) return undefined;
  const end = (outcome: Outcome): void =>
    endWith(run, outcome, (result) => {
      const { type, output, error } = fieldsOf(result.output);
      if (type === 'tool-error') run.fail(error);
      else run.end(output);
    });
  return { run, end };
}

/** Starts the run of a call, unless tracing is off. */
function start(runType: RunType, description: CallDescription, around = currentContext()): Run | undefined {
  const { name = runType, inputs, hiding } = description;
  if (sinkOf(around) === undefined) return undefined;
  const options = { name, runType, hiding, ...(isCallType(runType) && { source: CHANNEL }) };
  const call = { inputs: () => inputs, isSender: true };
  return beginRun(prepareRun(options, around, inputs, call), description);
}

/** Ends a run. `end` is called with the published result, if any. */
function endWith(run: Run, { error, result }: Outcome, end: (result: Fields) => void): void {
  if (error !== undefined) run.fail(error);
  else if (result === undefined) run.end();
  else end(fieldsOf(result));
}

/**
 * Records `streamText` from the streams of its model calls, because the SDK publishes no result. The SDK does not publish
 * that the last consumer has left: it stops reading, and the message is garbage-collected. The stream of the model call
 * reports that it is not read.
 */
class StreamedText implements Published, Watched {
  readonly run: Run;
  error: unknown;
  readonly #parts: Fields = { text: '', toolCalls: [], files: [] };
  #steps = 0;
  #stream: AnswerStream | undefined;

  constructor(run: Run) {
    this.run = run;
  }

  abandon(): void {
    this.#finish(() => this.run.cancel());
  }

  end({ error }: Outcome): void {
    this.#finish(() => (error === undefined ? this.run.end() : this.run.fail(error)));
  }

  /** Observes the stream of a model call. Returns false if the stream cannot be observed. */
  observe(stream: ReadableStream, call: Run): boolean {
    this.#stream = new StepStream(call, this);
    const observed = observedStream(stream, this.#stream);
    // The published result may be a redacted copy, in which another stream would have no effect.
    return interceptOwn(stream, 'pipeThrough', (pipe, _, args) => Reflect.apply(pipe, observed, args));
  }

  /** Takes the answer of a model call, whose stream has ended. */
  take(parts: Fields): void {
    const toolCalls = listOf(parts.toolCalls).map(fieldsOf);
    const parsed = toolCalls.map((call) => ({ ...call, input: parsedJson(call.input as string) }));
    Object.assign(this.#parts, parts, { toolCalls: parsed });
    this.error = parts.error;
    if (parts.finishReason !== undefined) this.#steps++;
  }

  #finish(end: () => void): void {
    abandonment.unwatch(this);
    // The SDK no longer reads the answer, for example after an abort.
    this.#stream?.cancel();
    this.run.keepResult(operationReader.read({ ...this.#parts, steps: this.#steps }).outputs);
    if (this.error === undefined) end();
    else this.run.fail(this.error);
  }
}

class StepStream extends AnswerStream {
  readonly #text: StreamedText;

  constructor(call: Run, text: StreamedText) {
    const read: typeof modelReader.read = (parts) => {
      text.take(fieldsOf(parts));
      return modelReader.read(parts);
    };
    super(call, { fold: modelReader.fold, read });
    this.#text = text;
  }

  /** The SDK ends the text if a stream fails. It calls the model again only after an error in a chunk. */
  override fail(error: unknown): void {
    super.fail(error);
    this.#text.end({ error });
  }

  override abandon(): void {
    this.#text.abandon();
  }
}
