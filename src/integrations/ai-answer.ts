import type { Run } from '../run/run.ts';
import { defined, fields, list, text } from './ai-fields.ts';
import { fileOf, toolCallOf } from './ai-prompt.ts';
import type { StreamWatcher } from './ai-stream.ts';
import { usageOf } from './ai-usage.ts';

/**
 * What a model, or a whole call of the SDK, has answered so far, out of the parts of its stream or of its result. Parts
 * are known by their `type`; what the majors call differently stands side by side.
 */
export class Answer {
  readonly #text: Words;
  readonly #reasoning: Words;
  #toolCalls: unknown[] = [];
  #files: unknown[] = [];
  #object: unknown;
  #steps = 0;
  #finishReason: unknown;
  #usage: unknown;
  #providerMetadata: unknown;
  #model: unknown;
  /** The first error among the parts; a stream that has one ends all the same. */
  #error: { readonly thrown: unknown } | undefined;

  constructor(charactersMax: number) {
    this.#text = new Words(charactersMax);
    this.#reasoning = new Words(charactersMax);
  }

  /** True when the part brings something that a reader would see. */
  add(given: unknown): boolean {
    const part = fields(given);
    switch (part.type) {
      case 'text':
      case 'text-delta':
        return this.#text.add(part.text ?? part.delta ?? part.textDelta);
      case 'reasoning':
      case 'reasoning-delta':
        return this.#reasoning.add(part.text ?? part.delta ?? part.textDelta);
      case 'tool-call':
        return this.#toolCalls.push(part) > 0;
      case 'file':
        return this.#files.push(fileOf(part)) > 0;
      case 'object':
        this.#object = part.object;
        return true;
      default:
        this.#addMark(part.type, part);
        return false;
    }
  }

  /** What `doGenerate` came to: content in parts since 5, one field for each kind in 4. */
  addResult(given: unknown): void {
    const result = fields(given);
    for (const part of list(result.content)) this.add(part);
    if (result.content === undefined) {
      const reasoning = typeof result.reasoning === 'string' ? [{ text: result.reasoning }] : list(result.reasoning);
      for (const part of reasoning) this.add({ type: 'reasoning', text: fields(part).text });
      this.add({ type: 'text', text: result.text });
      for (const call of list(result.toolCalls)) this.add({ ...fields(call), type: 'tool-call' });
      for (const file of list(result.files)) this.add({ ...fields(file), type: 'file' });
    }
    this.#addMark('response-metadata', fields(result.response));
    this.#addMark('finish', result);
  }

  /** Ends the run of a model call. */
  endModelCall(run: Run): void {
    const usage = usageOf(this.#usage, this.#providerMetadata);
    const message = defined({
      role: 'assistant',
      content: this.#text.value,
      reasoning: this.#reasoning.value || undefined,
      tool_calls: some(this.#toolCalls.map(toolCallOf)),
      files: some(this.#files),
      finish_reason: this.#finishReason,
    });
    run.set({
      metadata: { response_model: text(this.#model), usage_metadata: usage },
      outputs: defined({ messages: [message], usage_metadata: usage }),
    });
    this.#end(run);
  }

  /** Ends the run of a call of the SDK. Its tokens are told by the runs of the model calls. */
  endOperation(run: Run): void {
    const outcome = {
      text: this.#object === undefined ? this.#text.value : undefined,
      reasoning: this.#reasoning.value || undefined,
      object: this.#object,
      toolCalls: some(this.#toolCalls.map(shortCall)),
      files: some(this.#files),
      finishReason: this.#finishReason,
      steps: this.#steps || undefined,
    };
    run.set({ outputs: defined(outcome) });
    this.#end(run);
  }

  #end(run: Run): void {
    if (this.#error === undefined) {
      run.end();
      return;
    }
    const { thrown } = this.#error;
    // As 7 does it by cancelling the stream, 4 to 6 by an error, it is marked in both cases.
    if (fields(thrown).name === 'AbortError') run.set({ metadata: { cancelled: true } });
    run.fail(thrown);
  }

  #addMark(type: unknown, part: Readonly<Record<string, unknown>>): void {
    switch (type) {
      case 'response-metadata':
        this.#model = part.modelId ?? this.#model;
        break;
      case 'finish':
        // A text, or since 6 one that is the same for all providers and one that is the provider's own.
        this.#finishReason = fields(part.finishReason).unified ?? part.finishReason;
        this.#usage = part.usage;
        this.#providerMetadata = part.providerMetadata;
        break;
      case 'start-step':
      case 'step-start':
        this.#startStep();
        break;
      case 'finish-step':
      case 'step-finish':
        this.#steps++;
        break;
      case 'error':
        this.#error ??= { thrown: part.error };
        break;
      case 'abort':
        this.#error ??= { thrown: new DOMException(text(part.reason) ?? 'This operation was aborted', 'AbortError') };
        break;
    }
  }

  /** The answer of several steps is that of the last one. */
  #startStep(): void {
    this.#text.clear();
    this.#reasoning.clear();
    this.#toolCalls = [];
    this.#files = [];
  }
}

/** Follows the stream of an answer; `end` ends the run with it. */
export class AnswerWatcher implements StreamWatcher {
  readonly #run: Run;
  readonly #partOf: (chunk: unknown) => unknown;
  readonly #end: (answer: Answer, run: Run) => void;
  readonly #answer: Answer;
  #isFirst = true;

  constructor(run: Run, partOf: (chunk: unknown) => unknown, end: (answer: Answer, run: Run) => void) {
    this.#run = run;
    this.#partOf = partOf;
    this.#end = end;
    this.#answer = new Answer(charactersMax(run));
  }

  chunk(value: unknown): void {
    const isSeen = this.#answer.add(this.#partOf(value));
    if (isSeen && this.#isFirst) this.#run.event('new_token');
    this.#isFirst &&= !isSeen;
  }

  end(): void {
    this.#end(this.#answer, this.#run);
  }

  fail(error: unknown): void {
    this.#answer.add({ type: 'error', error });
    this.end();
  }

  leave(how: 'cancelled' | 'interrupted'): void {
    this.#run.set({ metadata: { [how]: true } });
    this.end();
  }
}

/** Characters that an answer may have: more than one payload takes are cut in any case. */
export function charactersMax(run: Run): number {
  return run.sink?.capture.payload.bytes ?? 0;
}

/** The result of a call, when that is over at once; of several steps it is that of the last one. */
export function outcomeOf(given: unknown): Record<string, unknown> {
  const result = fields(given);
  const steps = list(result.steps);
  const last = steps.length === 0 ? result : fields(steps.at(-1));
  const { embeddings, embedding, ranking, object } = result;
  const outcome = {
    text: text(last.text),
    reasoning: text(last.reasoningText ?? last.reasoning),
    object,
    toolCalls: some(list(last.toolCalls).map(shortCall)),
    files: some(list(last.files).map((file) => fileOf({ file }))),
    ...vectorsOf(embeddings ?? (embedding === undefined ? undefined : [embedding])),
    ranking,
    finishReason: last.finishReason,
    steps: steps.length || undefined,
  };
  return defined(outcome) ?? {};
}

/** Of vectors how many there are and how long: the numbers say nothing to a reader and are most of the payload. */
export function vectorsOf(vectors: unknown): { count?: number; dimensions?: number } {
  if (!Array.isArray(vectors)) return {};
  return { count: vectors.length, dimensions: list(vectors[0]).length };
}

function shortCall(given: unknown): unknown {
  const { toolCallId, toolName, input, args } = fields(given);
  return { toolCallId, toolName, input: input ?? args };
}

function some(items: readonly unknown[]): readonly unknown[] | undefined {
  return items.length === 0 ? undefined : items;
}

/** Text that comes in pieces, up to a limit. */
class Words {
  readonly #max: number;
  #kept = '';
  #cut = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get value(): string {
    return this.#cut === 0 ? this.#kept : `${this.#kept}[Truncated: ${this.#cut} characters]`;
  }

  add(piece: unknown): boolean {
    if (typeof piece !== 'string' || piece === '') return false;
    const kept = piece.slice(0, Math.max(0, this.#max - this.#kept.length));
    this.#kept += kept;
    this.#cut += piece.length - kept.length;
    return true;
  }

  clear(): void {
    this.#kept = '';
    this.#cut = 0;
  }
}
