import type { UsageMetadata } from '../run/record.ts';
import { completeUsage } from '../run/run-fields.ts';
import { type Answer, type AnswerReader, headlineOf, readerOf } from './answer.ts';
import { defined, type Fields, fieldsOf, isFields, mapped, numberOf, textOf, without } from './fields.ts';
import { base64Bytes } from './media.ts';
import { ChoicesFold } from './openai-choices-fold.ts';
import { ImagesFold } from './openai-images-fold.ts';
import { withoutBase64, withoutPixels, withoutSound } from './openai-media.ts';
import { ResponseFold } from './openai-response-fold.ts';

/** Chat completions and text completions: the answer itself. */
export const choicesReader: AnswerReader = readerOf(choicesAnswer, () => new ChoicesFold(choicesAnswer));

/** Responses: the answer itself, without what it repeats of the request. */
export const responseReader: AnswerReader = readerOf(responseAnswer, () => new ResponseFold(responseAnswer));

/** Embeddings: how many there are and of how many dimensions, without the vectors. */
export const embeddingsReader: AnswerReader = readerOf(embeddingsAnswer);

/** Images: the answer itself, with a marker in the place of the pixels. */
export const imagesReader: AnswerReader = readerOf(imagesAnswer, () => new ImagesFold(imagesAnswer));

/** What the service echoes of the request, which is recorded as inputs and parameters; the SDK's own digest of the output. */
const ECHOES = new Set(['instructions', 'tools', 'prompt', 'output_text']);

function choicesAnswer(answer: Fields): Answer {
  return { outputs: { ...answer, choices: mapped(answer.choices, withoutSound) }, ...facts(answer) };
}

function responseAnswer(answer: Fields): Answer {
  const output = mapped(answer.output, withoutPixels);
  return { outputs: { ...without(answer, ECHOES), output }, ...facts(answer) };
}

function embeddingsAnswer(answer: Fields): Answer {
  const data = Array.isArray(answer.data) ? answer.data : [];
  const { object, model } = answer;
  const outputs = { object, model, count: data.length, dimensions: dimensionsOf(fieldsOf(data[0]).embedding) };
  return { outputs: { ...outputs, usage: answer.usage }, ...facts(answer) };
}

/** A vector comes as a list, or as base64 of floats of four bytes. */
function dimensionsOf(vector: unknown): number | undefined {
  if (typeof vector === 'string') return base64Bytes(vector) / 4;
  return Array.isArray(vector) || ArrayBuffer.isView(vector) ? (vector as unknown[]).length : undefined;
}

function imagesAnswer(answer: Fields): Answer {
  return { outputs: { ...answer, data: mapped(answer.data, withoutBase64) }, ...facts(answer) };
}

/** A response may tell its failure in itself, and so may, with status 200, what a gateway passes on of another service. */
function facts(answer: Fields): Omit<Answer, 'outputs'> {
  const { code, message } = fieldsOf(answer.error);
  const usage = isFields(answer.usage) ? usageOf(answer.usage, answer.service_tier) : undefined;
  return { model: textOf(answer.model), usage, error: headlineOf(code, message) };
}

/**
 * Reads the token usage of a response. Chat completions, completions and embeddings report prompt and completion tokens;
 * responses and images report input and output tokens. `cost` is an extension of OpenRouter.
 */
function usageOf(usage: Fields, serviceTier: unknown): UsageMetadata | undefined {
  const input = numberOf(usage.input_tokens ?? usage.prompt_tokens);
  const output = numberOf(usage.output_tokens ?? usage.completion_tokens);
  const ofInput = fieldsOf(usage.input_tokens_details ?? usage.prompt_tokens_details);
  const ofOutput = fieldsOf(usage.output_tokens_details ?? usage.completion_tokens_details);
  const found = defined({
    input_tokens: input,
    output_tokens: output ?? (input === undefined ? undefined : 0),
    total_tokens: numberOf(usage.total_tokens),
    input_token_details: defined({
      cache_read: numberOf(ofInput.cached_tokens),
      cache_creation: numberOf(ofInput.cache_write_tokens),
      audio: numberOf(ofInput.audio_tokens),
      image: numberOf(ofInput.image_tokens),
      text: numberOf(ofInput.text_tokens),
    }),
    output_token_details: defined({
      reasoning: numberOf(ofOutput.reasoning_tokens),
      audio: numberOf(ofOutput.audio_tokens),
      image: numberOf(ofOutput.image_tokens),
      text: numberOf(ofOutput.text_tokens),
      accepted_prediction: numberOf(ofOutput.accepted_prediction_tokens),
      rejected_prediction: numberOf(ofOutput.rejected_prediction_tokens),
    }),
    total_cost: numberOf(usage.cost),
  }) as UsageMetadata | undefined;
  return found && completeUsage(found, serviceTier);
}
