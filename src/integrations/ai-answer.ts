import { fileOf, toolCallOf } from './ai-prompt.ts';
import { usageOf } from './ai-usage.ts';
import type { Answer, Fold } from './answer.ts';
import { copyOf } from './delta.ts';
import { defined, fieldsOf, listOf, textOf } from './fields.ts';

/** What has come of an answer. */
interface Said {
  text: string;
  reasoning: string;
  toolCalls: unknown[];
  files: unknown[];
  object: unknown;
  steps: number;
  finishReason: unknown;
  usage: unknown;
  providerMetadata: unknown;
  model: unknown;
  /** The first error among the parts; a stream that has one ends all the same. */
  error: unknown;
}

/**
 * What a model, or a whole call of the SDK, has answered, out of the parts of its stream or of its result. Parts are known
 * by their `type`; what the majors call differently stands side by side. What a reader would see of a part that is no
 * text counts as one character.
 */
export class PartsFold implements Fold {
  characters = 0;
  readonly #read: (said: Said) => Answer;
  readonly #said: Said = {
    text: '',
    reasoning: '',
    toolCalls: [],
    files: [],
    object: undefined,
    steps: 0,
    finishReason: undefined,
    usage: undefined,
    providerMetadata: undefined,
    model: undefined,
    error: undefined,
  };

  constructor(read: (said: Said) => Answer) {
    this.#read = read;
  }

  add(chunk: unknown, isFull: boolean): void {
    // Streams of text carry their parts inside of another object, those of objects as they are.
    const part = fieldsOf(fieldsOf(chunk).part ?? chunk);
    const said = this.#said;
    switch (part.type) {
      case 'text':
      case 'text-delta':
        said.text += this.#kept(part, isFull);
        break;
      case 'reasoning':
      case 'reasoning-delta':
        said.reasoning += this.#kept(part, isFull);
        break;
      case 'tool-call':
        // The tool gets the same object, and may change it before the answer is over.
        said.toolCalls.push(copyOf(part));
        this.characters++;
        break;
      case 'file':
        said.files.push(fileOf(part));
        this.characters++;
        break;
      case 'object':
        said.object = part.object;
        this.characters++;
        break;
      default:
        this.#addMark(part.type, part);
    }
  }

  /** What `doGenerate` came to: content in parts since 5, one field for each kind in 4. */
  addResult(given: unknown): void {
    const result = fieldsOf(given);
    const add = (part: unknown): void => this.add(part, false);
    for (const part of listOf(result.content)) add(part);
    if (result.content === undefined) {
      const reasoning = typeof result.reasoning === 'string' ? [{ text: result.reasoning }] : listOf(result.reasoning);
      for (const part of reasoning) add({ type: 'reasoning', text: fieldsOf(part).text });
      add({ type: 'text', text: result.text });
      for (const call of listOf(result.toolCalls)) add({ ...fieldsOf(call), type: 'tool-call' });
      for (const file of listOf(result.files)) add({ ...fieldsOf(file), type: 'file' });
    }
    this.#addMark('response-metadata', fieldsOf(result.response));
    this.#addMark('finish', result);
  }

  answer(): Answer {
    return this.#read(this.#said);
  }

  #kept(part: Readonly<Record<string, unknown>>, isFull: boolean): string {
    const text = textOf(part.text ?? part.delta ?? part.textDelta) ?? '';
    this.characters += text.length;
    return isFull ? '' : text;
  }

  #addMark(type: unknown, part: Readonly<Record<string, unknown>>): void {
    const said = this.#said;
    switch (type) {
      case 'response-metadata':
        said.model = part.modelId ?? said.model;
        break;
      case 'finish':
        // A text, or since 6 one that is the same for all providers and one that is the provider's own.
        said.finishReason = fieldsOf(part.finishReason).unified ?? part.finishReason;
        said.usage = part.usage;
        said.providerMetadata = part.providerMetadata;
        break;
      case 'start-step':
      case 'step-start':
        // The answer of several steps is that of the last one.
        Object.assign(said, { text: '', reasoning: '', toolCalls: [], files: [] });
        break;
      case 'finish-step':
      case 'step-finish':
        said.steps++;
        break;
      case 'error':
        said.error ??= part.error ?? 'the model failed';
        break;
      case 'abort':
        said.error ??= new DOMException(textOf(part.reason) ?? 'This operation was aborted', 'AbortError');
        break;
    }
  }
}

/** The answer of a model. */
export function modelAnswer(said: Said): Answer {
  const message = defined({
    role: 'assistant',
    content: said.text,
    reasoning: said.reasoning || undefined,
    tool_calls: some(said.toolCalls.map(toolCallOf)),
    files: some(said.files),
    finish_reason: said.finishReason,
  });
  const usage = usageOf(said.usage, said.providerMetadata);
  return { outputs: { messages: [message] }, usage, model: textOf(said.model), error: said.error };
}

/** The answer of a call of the SDK. Its tokens are told by the runs of the model calls. */
export function operationAnswer(said: Said): Answer {
  const outcome = {
    text: said.object === undefined ? said.text : undefined,
    reasoning: said.reasoning || undefined,
    object: said.object,
    toolCalls: some(said.toolCalls.map(shortCall)),
    files: some(said.files),
    finishReason: said.finishReason,
    steps: said.steps || undefined,
  };
  return { outputs: defined(outcome) ?? {}, error: said.error };
}

/** The result of a call, when that is over at once; of several steps it is that of the last one. */
export function outcomeOf(given: unknown): Record<string, unknown> {
  const result = fieldsOf(given);
  const steps = listOf(result.steps);
  const last = steps.length === 0 ? result : fieldsOf(steps.at(-1));
  const { embeddings, embedding, ranking, object } = result;
  const outcome = {
    text: textOf(last.text),
    reasoning: textOf(last.reasoningText ?? last.reasoning),
    object,
    toolCalls: some(listOf(last.toolCalls).map(shortCall)),
    files: some(listOf(last.files).map((file) => fileOf({ file }))),
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
  return { count: vectors.length, dimensions: listOf(vectors[0]).length };
}

function shortCall(given: unknown): unknown {
  const { toolCallId, toolName, input, args } = fieldsOf(given);
  return { toolCallId, toolName, input: input ?? args };
}

function some(items: readonly unknown[]): readonly unknown[] | undefined {
  return items.length === 0 ? undefined : items;
}
