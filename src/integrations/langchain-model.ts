import type { UsageMetadata } from '../run/record.ts';
import { completeUsage } from '../run/run-fields.ts';
import { type Fields, fieldsOf, listOf } from './fields.ts';
import { isMessage, plainMessage } from './langchain-messages.ts';

/** What a call of a model came to. */
export interface ModelResult {
  readonly outputs: Fields;
  readonly usage: UsageMetadata | undefined;
  readonly metadata: Fields;
}

/**
 * The metadata of a model call: what LangChain says, the parameters of the call, and those of them that viewers look for
 * where LangChain has left them out.
 */
export function modelMetadata(metadata: Readonly<Fields> | undefined, parameters: unknown): Fields {
  const known: Fields = { ...metadata };
  const given = fieldsOf(parameters);
  if (Object.keys(given).length > 0) known.ls_invocation_params = given;
  known.ls_model_name ??= given.model ?? given.model_name;
  known.ls_temperature ??= given.temperature;
  known.ls_max_tokens ??= given.max_tokens ?? given.max_completion_tokens;
  known.ls_stop ??= given.stop;
  return known;
}

/**
 * A model's result (`LLMResult`): messages with the reason why each ended, or the text of a model without messages. A
 * stream comes here merged to one message.
 */
export function modelResult(result: unknown): ModelResult {
  const { generations, llmOutput } = fieldsOf(result);
  const all = listOf(generations).flatMap(listOf).map(fieldsOf);
  const usage = usageOf(all, fieldsOf(llmOutput));
  const outputs = outputsOf(all);
  if (usage !== undefined) outputs.usage_metadata = usage;
  const about = all.map(responseOf);
  const metadata: Fields = { response_model: about.map(({ model_name, model }) => model_name ?? model).find(isText) };
  const reasons = all.map(finishReason).filter(isText);
  if (reasons.length > 0) metadata.finish_reasons = reasons;
  return { outputs, usage, metadata };
}

/** Whether a chunk of a stream brings anything: text, a part of a tool call, reasoning. The first as a rule does not. */
export function isToken(token: unknown, chunk: unknown): boolean {
  if (token !== '') return true;
  const { content, tool_call_chunks, additional_kwargs } = fieldsOf(fieldsOf(chunk).message);
  const more = fieldsOf(additional_kwargs);
  return hasItems(content) || hasItems(tool_call_chunks) || isText(more.reasoning_content) || 'reasoning' in more;
}

function outputsOf(generations: readonly Fields[]): Fields {
  const messages = generations.flatMap((generation) => {
    const { message } = generation;
    if (typeof message !== 'object' || message === null || !isMessage(message)) return [];
    const reason = finishReason(generation);
    return [reason === undefined ? plainMessage(message) : { ...plainMessage(message), finish_reason: reason }];
  });
  if (messages.length > 0) return { messages };
  const texts = generations.map(({ text }) => text);
  return texts.length === 1 ? { text: texts[0] } : { texts };
}

function finishReason(generation: Fields): unknown {
  const info = fieldsOf(generation.generationInfo);
  const about = responseOf(generation);
  const reasons = [info.finish_reason, about.finish_reason, about.stop_reason, about.finishReason, about.done_reason];
  return reasons.find(isText);
}

/**
 * The counts of the messages, which tell cached and reasoning tokens apart, else those of the result. Of several answers
 * to one question each message has the counts of the whole.
 */
function usageOf(generations: readonly Fields[], llmOutput: Fields): UsageMetadata | undefined {
  for (const { message } of generations) {
    const usage = countsOf(fieldsOf(message).usage_metadata);
    if (usage !== undefined) return usage;
  }
  const { promptTokens, completionTokens, totalTokens } = fieldsOf(
    llmOutput.tokenUsage ?? llmOutput.estimatedTokenUsage,
  );
  return countsOf({ input_tokens: promptTokens, output_tokens: completionTokens, total_tokens: totalTokens });
}

/** Where a service tells no counts, LangChain makes an object without any. */
function countsOf(given: unknown): UsageMetadata | undefined {
  const usage = fieldsOf(given);
  const counts = numbersOf(usage);
  if (counts.input_tokens === undefined && counts.output_tokens === undefined) return undefined;
  const found: UsageMetadata = counts;
  for (const key of ['input_token_details', 'output_token_details'] as const) {
    const details = numbersOf(fieldsOf(usage[key]));
    if (Object.keys(details).length > 0) found[key] = details;
  }
  return completeUsage(found);
}

function numbersOf(fields: Fields): Record<string, number> {
  return Object.fromEntries(Object.entries(fields).filter((entry): entry is [string, number] => isNumber(entry[1])));
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number';
}

function responseOf({ message }: Fields): Fields {
  return fieldsOf(fieldsOf(message).response_metadata);
}

function hasItems(value: unknown): boolean {
  return (Array.isArray(value) || typeof value === 'string') && value.length > 0;
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
