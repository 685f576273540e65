import { defined, type Fields, fieldsOf, filled, listOf, textOf } from '../../payload/fields.ts';
import { aiSdkFile, aiSdkToolCall } from '../../services/ai-sdk/messages.ts';
import { aiSdkUsage } from '../../services/ai-sdk/usage.ts';
import { type Answer, type AnswerReader, type Fold, vectorsOf } from '../../services/answer.ts';
import { copyOf } from '../../services/deltas.ts';
import { mediaOutputs } from './media.ts';

interface Parts {
  text: string | undefined;
  reasoning: string | undefined;
  toolCalls: unknown[];
  files: unknown[];
  /** All other parts of the answer, for example sources and the results of tools that the provider has called. */
  parts: unknown[];
  object?: unknown;
  steps: number;
  finishReason?: unknown;
  usage?: unknown;
  providerMetadata?: unknown;
  model?: unknown;
  responseId?: unknown;
  /** The first error in the stream. The stream may continue after an error. */
  error?: unknown;
}

export const modelReader: AnswerReader = {
  fold: partsFold,
  read(given) {
    const parts = given as Parts;
    const message = defined({
      role: 'assistant',
      content: parts.text || undefined,
      reasoning: parts.reasoning || undefined,
      tool_calls: filled(parts.toolCalls.map(aiSdkToolCall)),
      files: filled(parts.files),
      parts: filled(parts.parts),
      finish_reason: parts.finishReason,
    });
    const usage = aiSdkUsage(parts.usage, parts.providerMetadata);
    const { model, responseId, error } = parts;
    // Anthropic's own usage contains the tier, the speed, the region and the web searches.
    const outputs = defined({ messages: [message], usage: fieldsOf(fieldsOf(parts.providerMetadata).anthropic).usage });
    return { outputs, usage, model: textOf(model), responseId: textOf(responseId), error };
  },
};

/** Omits token counts, because the runs of the model calls contain them. */
export const operationReader: AnswerReader = {
  fold: partsFold,
  read: (given) => ({ outputs: operationOutputs(given as Parts), error: (given as Parts).error }),
};

function operationOutputs(answer: Omit<Parts, 'parts'>): Fields {
  const { text, reasoning, object, toolCalls, files, finishReason, steps } = answer;
  return defined({
    text: object === undefined ? text : undefined,
    reasoning: reasoning || undefined,
    object,
    toolCalls: filled(toolCalls.map(shortCall)),
    files: filled(files),
    finishReason,
    steps: steps || undefined,
  });
}

/**
 * Returns the outputs of an SDK function that does not stream. After several steps, only the last result is returned.
 */
export function outputsOfAnswer(given: unknown): Fields {
  const result = fieldsOf(given);
  const media = mediaOutputs(result);
  if (media !== undefined) return media;
  const { object, embeddings, embedding, ranking } = result;
  const steps = listOf(result.steps);
  const { text, reasoningText, reasoning, toolCalls, files, finishReason } =
    steps.length === 0 ? result : fieldsOf(steps.at(-1));
  const outputs = operationOutputs({
    text: textOf(text),
    reasoning: textOf(reasoningText ?? reasoning),
    object,
    toolCalls: [...listOf(toolCalls)],
    files: listOf(files).map((file) => aiSdkFile({ file })),
    finishReason,
    steps: steps.length,
  });
  const vectors = embeddings === undefined && embedding === undefined ? {} : vectorsOf(result);
  return { ...outputs, ...vectors, ...(ranking === undefined ? {} : { ranking }) };
}

export function generatedAnswer(given: unknown): Answer {
  const result = fieldsOf(given);
  const outputs = mediaOutputs(result);
  if (outputs !== undefined) {
    const model = textOf(fieldsOf(result.response).modelId);
    return { outputs, usage: aiSdkUsage(result.usage, result.providerMetadata), model };
  }
  const fold = partsFold();
  for (const part of resultParts(result)) fold.add(part, false);
  return modelReader.read(fold.result());
}

/**
 * Converts a result to a list of parts. AI SDK 4 returns one property per kind of content. Later versions return a
 * list.
 */
function resultParts(result: Fields): unknown[] {
  const { content, reasoning, text, toolCalls, files, response } = result;
  const ends = [
    { ...fieldsOf(response), type: 'response-metadata' },
    { ...result, type: 'finish' },
  ];
  if (content !== undefined) return [...listOf(content), ...ends];
  return [
    ...(typeof reasoning === 'string' ? [{ text: reasoning }] : listOf(reasoning)).map((part) => ({
      type: 'reasoning',
      text: fieldsOf(part).text,
    })),
    { type: 'text', text },
    ...listOf(toolCalls).map((call) => ({ ...fieldsOf(call), type: 'tool-call' })),
    ...listOf(files).map((file) => ({ ...fieldsOf(file), type: 'file' })),
    ...ends,
  ];
}

type AddPart = (parts: Parts, part: Fields) => void;

const startStep: AddPart = (parts) => {
  // Only the answer of the last step is recorded.
  Object.assign(parts, { text: '', reasoning: '', toolCalls: [], files: [], parts: [] });
};
const finishStep: AddPart = (parts) => {
  parts.steps++;
};

/** Maps each type of text part to the property that collects the text. */
const TEXTS: ReadonlyMap<unknown, 'text' | 'reasoning'> = new Map([
  ['text', 'text'],
  ['text-delta', 'text'],
  ['reasoning', 'reasoning'],
  ['reasoning-delta', 'reasoning'],
]);

/** Collects parts whose content is not text. Each part counts as one character of the answer. */
const CONTENT: ReadonlyMap<unknown, AddPart> = new Map<string, AddPart>([
  // The part is copied, because the tool receives the same object and may change it.
  ['tool-call', ({ toolCalls }, part) => toolCalls.push(copyOf(part))],
  ['file', ({ files }, part) => files.push(aiSdkFile(part))],
  ['object', (parts, { object }) => Object.assign(parts, { object })],
]);

/** Matches parts that frame the answer, or repeat a tool call. Covers all versions of the AI SDK. */
const FRAME =
  /^(?:(?:model-call|reasoning|stream|text|tool-input|tool-call-streaming)-(?:start|end|delta|response-metadata)|tool-call-delta|start|ping|raw)$/;

/** Reads parts that have no content. Covers all versions of the AI SDK. */
const MARKS: ReadonlyMap<unknown, AddPart> = new Map<string, AddPart>([
  [
    'response-metadata',
    (parts, { id, modelId }) =>
      Object.assign(parts, { responseId: id ?? parts.responseId, model: modelId ?? parts.model }),
  ],
  [
    'finish',
    (parts, { finishReason, usage, providerMetadata }) => {
      // Since version 6 of the AI SDK, `finishReason` is an object that also contains the provider's own reason.
      const unified = fieldsOf(finishReason).unified ?? finishReason;
      Object.assign(parts, { finishReason: unified, usage, providerMetadata });
    },
  ],
  ['start-step', startStep],
  ['step-start', startStep],
  ['finish-step', finishStep],
  ['step-finish', finishStep],
  ['error', (parts, { error }) => Object.assign(parts, { error: parts.error ?? error ?? 'the model failed' })],
  [
    'abort',
    (parts, { reason }) => {
      const text = textOf(reason)?.replace(/^AbortError: /, '');
      parts.error ??= new DOMException(text ?? 'This operation was aborted', 'AbortError');
    },
  ],
]);

function partsFold(): Fold {
  const parts: Parts = { text: '', reasoning: '', toolCalls: [], files: [], parts: [], steps: 0 };
  return {
    add(chunk, isFull) {
      // Unlike `streamObject`, `streamText` wraps each part in an object.
      const part = fieldsOf(fieldsOf(chunk).part ?? chunk);
      const field = TEXTS.get(part.type);
      if (field !== undefined) {
        const text = textOf(part.text ?? part.delta ?? part.textDelta) ?? '';
        if (!isFull) parts[field] += text;
        return text.length;
      }
      const add = CONTENT.get(part.type) ?? MARKS.get(part.type);
      const isOther = add === undefined && typeof part.type === 'string' && !FRAME.test(part.type);
      if (isOther && !isFull) parts.parts.push(copyOf(part));
      add?.(parts, part);
      return isOther || CONTENT.has(part.type) ? 1 : 0;
    },
    result: () => parts,
  };
}

function shortCall(given: unknown): unknown {
  const { toolCallId, toolName, input, args } = fieldsOf(given);
  return { toolCallId, toolName, input: input ?? args };
}
