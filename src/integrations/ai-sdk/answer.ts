import type { UsageMetadata } from '../../run/record.ts';
import type { Answer, AnswerReader, Fold } from '../call-reader.ts';
import { defined, type Fields, fieldsOf, listOf, textOf } from '../fields.ts';
import { copyOf } from '../fold.ts';
import { readUsage, type UsagePaths } from '../usage.ts';
import { fileOf, toolCallOf } from './prompt.ts';

/** The combined parts of a stream or result. */
interface Parts {
  text: string;
  reasoning: string;
  toolCalls: unknown[];
  files: unknown[];
  object?: unknown;
  steps: number;
  finishReason?: unknown;
  usage?: unknown;
  providerMetadata?: unknown;
  model?: unknown;
  /** The first error part. A stream continues after an error part. */
  error?: unknown;
}

/** Reads the answer of a model. */
export const modelReader: AnswerReader = {
  fold: () => partsFold(),
  read(given) {
    const parts = given as Parts;
    const message = defined({
      role: 'assistant',
      content: parts.text,
      reasoning: parts.reasoning || undefined,
      tool_calls: nonEmpty(parts.toolCalls.map(toolCallOf)),
      files: nonEmpty(parts.files),
      finish_reason: parts.finishReason,
    });
    const usage = usageOf(parts.usage, parts.providerMetadata);
    return { outputs: { messages: [message] }, usage, model: textOf(parts.model), error: parts.error };
  },
};

/** Reads the stream of an SDK function. The runs of the model calls contain the tokens. */
export const operationReader: AnswerReader = {
  fold: () => partsFold(),
  read(given) {
    const { text, reasoning, object, toolCalls, files, finishReason, steps, error } = given as Parts;
    const outputs = defined({
      text: object === undefined ? text : undefined,
      reasoning: reasoning || undefined,
      object,
      toolCalls: nonEmpty(toolCalls.map(shortCall)),
      files: nonEmpty(files),
      finishReason,
      steps: steps || undefined,
    });
    return { outputs: outputs ?? {}, error };
  },
};

/** Returns the answer that `doGenerate` returned. */
export function generatedAnswer(result: unknown): Answer {
  const fold = partsFold();
  for (const part of resultParts(fieldsOf(result))) fold.add(part, false);
  return modelReader.read(fold.result());
}

/** Major 4 returns one property per kind of content. Later majors return a list of parts. */
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

/**
 * Combines the parts of a stream, in the form of any major. A part without text counts as one character, because the
 * application may show it.
 */
function partsFold(): Fold {
  const parts: Parts = { text: '', reasoning: '', toolCalls: [], files: [], steps: 0 };
  const add = (part: Fields, isFull: boolean): number => {
    const text = textOf(part.text ?? part.delta ?? part.textDelta) ?? '';
    switch (part.type) {
      case 'text':
      case 'text-delta':
        if (!isFull) parts.text += text;
        return text.length;
      case 'reasoning':
      case 'reasoning-delta':
        if (!isFull) parts.reasoning += text;
        return text.length;
      case 'tool-call':
        // The tool receives the same object and may change it.
        parts.toolCalls.push(copyOf(part));
        return 1;
      case 'file':
        parts.files.push(fileOf(part));
        return 1;
      case 'object':
        parts.object = part.object;
        return 1;
      default:
        addMark(parts, part);
        return 0;
    }
  };
  return {
    // `streamText` wraps each part in an object. `streamObject` does not.
    add: (chunk, isFull) => add(fieldsOf(fieldsOf(chunk).part ?? chunk), isFull),
    result: () => parts,
  };
}

/** Adds a part that has no content. */
function addMark(parts: Parts, part: Fields): void {
  switch (part.type) {
    case 'response-metadata':
      parts.model = part.modelId ?? parts.model;
      break;
    case 'finish':
      // Since major 6, the reason is an object with a unified reason and the provider's own.
      parts.finishReason = fieldsOf(part.finishReason).unified ?? part.finishReason;
      parts.usage = part.usage;
      parts.providerMetadata = part.providerMetadata;
      break;
    case 'start-step':
    case 'step-start':
      // The answer of several steps is the answer of the last step.
      Object.assign(parts, { text: '', reasoning: '', toolCalls: [], files: [] });
      break;
    case 'finish-step':
    case 'step-finish':
      parts.steps++;
      break;
    case 'error':
      parts.error ??= part.error ?? 'the model failed';
      break;
    case 'abort':
      parts.error ??= new DOMException(textOf(part.reason) ?? 'This operation was aborted', 'AbortError');
      break;
  }
}

/** Returns the outputs of an SDK function that does not stream. The result of several steps is that of the last step. */
export function outcomeOf(given: unknown): Fields {
  const result = fieldsOf(given);
  const steps = listOf(result.steps);
  const last = steps.length === 0 ? result : fieldsOf(steps.at(-1));
  const { embeddings, embedding, ranking, object } = result;
  const outcome = {
    text: textOf(last.text),
    reasoning: textOf(last.reasoningText ?? last.reasoning),
    object,
    toolCalls: nonEmpty(listOf(last.toolCalls).map(shortCall)),
    files: nonEmpty(listOf(last.files).map((file) => fileOf({ file }))),
    ...vectorsOf(embeddings ?? (embedding === undefined ? undefined : [embedding])),
    ranking,
    finishReason: last.finishReason,
    steps: steps.length || undefined,
  };
  return defined(outcome) ?? {};
}

/** Returns the number and the dimensions of vectors. The vectors are not recorded. */
export function vectorsOf(vectors: unknown): { count?: number; dimensions?: number } {
  if (!Array.isArray(vectors)) return {};
  return { count: vectors.length, dimensions: listOf(vectors[0]).length };
}

function shortCall(given: unknown): unknown {
  const { toolCallId, toolName, input, args } = fieldsOf(given);
  return { toolCallId, toolName, input: input ?? args };
}

function nonEmpty(items: readonly unknown[]): readonly unknown[] | undefined {
  return items.length === 0 ? undefined : items;
}

/**
 * Major 4 reports `promptTokens`, major 5 `inputTokens` and `cachedInputTokens`, and later majors `inputTokens.total`
 * with its parts. Embeddings report `tokens`. Majors 4 and 5 report some counts only in the metadata of the provider.
 */
const USAGE: UsagePaths = {
  input_tokens: ['inputTokens.total', 'inputTokens', 'promptTokens', 'tokens'],
  output_tokens: ['outputTokens.total', 'outputTokens', 'completionTokens'],
  total_tokens: ['totalTokens'],
  input_token_details: {
    cache_read: [
      'inputTokens.cacheRead',
      'cachedInputTokens',
      'metadata.openai.cachedPromptTokens',
      'metadata.anthropic.cacheReadInputTokens',
    ],
    cache_creation: ['inputTokens.cacheWrite', 'metadata.anthropic.cacheCreationInputTokens'],
    ephemeral_5m_input_tokens: ['metadata.anthropic.usage.cache_creation.ephemeral_5m_input_tokens'],
    ephemeral_1hr_input_tokens: ['metadata.anthropic.usage.cache_creation.ephemeral_1h_input_tokens'],
  },
  output_token_details: {
    reasoning: ['outputTokens.reasoning', 'reasoningTokens', 'metadata.openai.reasoningTokens'],
  },
};

export function usageOf(usage: unknown, metadata: unknown): UsageMetadata | undefined {
  const { openai, anthropic } = fieldsOf(metadata);
  const isTotal = fieldsOf(fieldsOf(usage).inputTokens).total !== undefined;
  return readUsage({ ...fieldsOf(usage), metadata }, USAGE, {
    serviceTier: fieldsOf(openai).serviceTier,
    // Anthropic's provider excludes cached tokens from the input tokens before major 6.
    excludesCached: !isTotal && fieldsOf(anthropic).cacheCreationInputTokens !== undefined,
  });
}
