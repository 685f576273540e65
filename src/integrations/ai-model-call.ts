import type { CallDescription } from '../instrument/plan.ts';
import { messagesOf } from './ai-prompt.ts';
import { defined, type Fields, fieldsOf, textOf } from './fields.ts';

/** What a call of a language model is asked with, without its headers: they carry keys. */
export function describeGeneration(model: Fields, options: Fields): CallDescription {
  const { prompt } = options;
  return {
    ...modelFields(model, 'chat', parametersOf(options)),
    inputs: Array.isArray(prompt) ? { messages: messagesOf(prompt) } : { prompt },
  };
}

export function describeEmbedding(model: Fields, { values, providerOptions }: Fields): CallDescription {
  return { ...modelFields(model, 'embedding', { provider_options: providerOptions }), inputs: { values } };
}

export function describeRanking(model: Fields, options: Fields): CallDescription {
  const { query, documents, topN, providerOptions } = options;
  const parameters = { top_n: topN, provider_options: providerOptions };
  return { ...modelFields(model, 'rerank', parameters), inputs: { query, documents } };
}

/** The run is named after the model; `openai.responses` is the provider `openai`. */
function modelFields(model: Fields, type: string, parameters: Fields): Omit<CallDescription, 'inputs'> {
  const { provider, modelId } = model;
  const metadata = {
    ls_provider: textOf(provider)?.split('.', 1)[0],
    ls_model_name: modelId,
    ls_model_type: type,
    ls_temperature: parameters.temperature,
    ls_max_tokens: parameters.max_tokens,
    ls_stop: parameters.stop,
    ls_invocation_params: defined({ model: modelId, ...parameters }),
  };
  return { name: textOf(modelId) ?? 'model', metadata };
}

/** Under the names that `otel/` gives them too. */
function parametersOf(options: Fields): Fields {
  // 4 says in `mode` what it asks for, and passes the provider's options as `providerMetadata`.
  const mode = fieldsOf(options.mode);
  const isObject = typeof mode.type === 'string' && mode.type.startsWith('object');
  return {
    temperature: options.temperature,
    max_tokens: options.maxOutputTokens ?? options.maxTokens,
    stop: options.stopSequences,
    top_p: options.topP,
    top_k: options.topK,
    frequency_penalty: options.frequencyPenalty,
    presence_penalty: options.presencePenalty,
    seed: options.seed,
    reasoning: options.reasoning,
    tools: options.tools ?? mode.tools,
    tool_choice: options.toolChoice ?? mode.toolChoice,
    response_format: options.responseFormat ?? (isObject ? mode : undefined),
    provider_options: options.providerOptions ?? options.providerMetadata,
  };
}
