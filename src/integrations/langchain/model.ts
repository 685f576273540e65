import { definedOrNone, type Fields, fieldsOf, firstText, listOf } from '../../payload/fields.ts';
import { completeUsage, metadataOfUsage, type UsageMetadata } from '../../payload/usage.ts';
import { RESPONSE_ID } from '../../run/calls/same-call.ts';
import { aiSdkUsage } from '../../services/ai-sdk/usage.ts';
import { wholeUsage } from '../../services/any.ts';
import { isMessage, plainMessage } from './payload.ts';

/** Adds a model call's parameters to LangChain's metadata, under the names that viewers use. */
export function modelMetadata(metadata: Readonly<Fields> | undefined, parameters: unknown): Fields {
  const known: Fields = { ...metadata };
  const given = fieldsOf(parameters);
  if (Object.keys(given).length > 0) known.ls_invocation_params = given;
  known.ls_model_name ??= given.model ?? given.model_name;
  known.ls_temperature ??= given.temperature;
  known.ls_max_tokens ??= given.max_tokens ?? given.max_completion_tokens ?? given.max_output_tokens;
  known.ls_stop ??= given.stop;
  return known;
}

/** Reads an `LLMResult`. LangChain has already combined a streamed answer into one message. */
export function modelResult(result: unknown): { readonly outputs: Fields; readonly metadata: Fields } {
  const { generations, llmOutput } = fieldsOf(result);
  const all = listOf(generations).flatMap(listOf).map(fieldsOf);
  const usage = usageOf(all, fieldsOf(llmOutput));
  const outputs = outputsOf(all);
  if (usage !== undefined) outputs.usage_metadata = usage;
  // For a streamed call of `invoke`, LangChain passes the model only in `generationInfo`.
  const responses = all.flatMap((one) => [responseOf(one), fieldsOf(one.generationInfo)]);
  const metadata: Fields = {
    response_model: firstText(...responses.map(({ model_name, model }) => model_name ?? model)),
    [RESPONSE_ID]: firstText(...all.map(responseIdOf)),
    ...metadataOfUsage(usage),
  };
  const reasons = all.map(finishReason).filter((reason) => reason !== undefined);
  if (reasons.length > 0) metadata.finish_reasons = reasons;
  return { outputs, metadata };
}

/** Returns whether a chunk contains text, reasoning, or part of a tool call. The first chunk is usually empty. */
export function hasTokens(token: unknown, chunk: unknown): boolean {
  if (token !== '') return true;
  const { content, tool_call_chunks, additional_kwargs } = fieldsOf(fieldsOf(chunk).message);
  const kwargs = fieldsOf(additional_kwargs);
  const hasItems = [content, tool_call_chunks].some((list) => listOf(list).length > 0);
  return hasItems || firstText(content, kwargs.reasoning_content) !== undefined || 'reasoning' in kwargs;
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

function finishReason(generation: Fields): string | undefined {
  const info = fieldsOf(generation.generationInfo);
  const response = responseOf(generation);
  const { finish_reason, stop_reason, finishReason, done_reason } = response;
  return firstText(info.finish_reason, finish_reason, stop_reason, finishReason, done_reason);
}

/**
 * Returns the usage of a message, or the less detailed usage of the result. Each message contains the usage of the whole
 * call. The service's own usage, if LangChain passes it on, wins over the counts that LangChain has derived from it.
 */
function usageOf(generations: readonly Fields[], llmOutput: Fields): UsageMetadata | undefined {
  for (const generation of generations) {
    const { usage, service_tier, ...response } = responseOf(generation);
    const own = wholeUsage(usage, service_tier) ?? wholeUsage(response);
    const { usage_metadata } = fieldsOf(generation.message);
    // If a service reports no usage, LangChain still creates a usage object, but without counts.
    const counted = own ?? definedOrNone(completeUsage(fieldsOf(usage_metadata)));
    if (counted?.input_tokens !== undefined || counted?.output_tokens !== undefined) return counted;
  }
  // The names are those of version 4 of the AI SDK.
  return aiSdkUsage(llmOutput.tokenUsage ?? llmOutput.estimatedTokenUsage, undefined);
}

/** Returns the id of the service's response. LangChain's own ids of messages start with `run-` or `lc_run-`. */
function responseIdOf(generation: Fields): unknown {
  const id = responseOf(generation).id ?? fieldsOf(generation.message).id;
  return typeof id === 'string' && !/^(lc_)?run-/.test(id) ? id : undefined;
}

function responseOf({ message }: Fields): Fields {
  return fieldsOf(fieldsOf(message).response_metadata);
}
