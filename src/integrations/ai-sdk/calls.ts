import { defined, definedOrNone, type Fields, fieldsOf, idTextOf, signalOf, textOf } from '../../payload/fields.ts';
import type { CallDescription } from '../../run/run.ts';
import { hidingIf } from '../../run/run-options.ts';
import { aiSdkMessages } from '../../services/ai-sdk/messages.ts';
import { mediaInputs } from './media.ts';

/**
 * Returns the parameters of a model call. In version 4, the tools are in `mode` and the provider options are in
 * `providerMetadata`. Headers are not recorded, because they may contain API keys.
 */
function parametersOf(model: unknown, options: Fields): Fields {
  const mode = fieldsOf(options.mode);
  return {
    model,
    temperature: options.temperature,
    max_tokens: options.maxOutputTokens ?? options.maxTokens,
    stop: options.stopSequences,
    top_n: options.topN,
    top_p: options.topP,
    top_k: options.topK,
    frequency_penalty: options.frequencyPenalty,
    presence_penalty: options.presencePenalty,
    seed: options.seed,
    reasoning: options.reasoning,
    tools: options.tools ?? mode.tools,
    tool_choice: options.toolChoice ?? mode.toolChoice,
    response_format: options.responseFormat ?? (textOf(mode.type)?.startsWith('object') ? mode : undefined),
    provider_options: options.providerOptions ?? options.providerMetadata,
  };
}

/** Describes a model call. The model type decides which options are recorded as inputs. */
export function describeModelCall(model: Fields, modelType: string, options: Fields): CallDescription {
  const { provider, modelId } = model;
  const parameters = parametersOf(modelId, options);
  const { prompt, values, query, documents } = options;
  const inputs = Array.isArray(prompt)
    ? { messages: aiSdkMessages(prompt) }
    : defined({ values, query, documents, ...mediaInputs(options) });
  return {
    signal: signalOf(options.abortSignal),
    name: textOf(modelId) ?? 'model',
    inputs,
    metadata: {
      // The provider `openai.responses` is recorded as `openai`.
      ls_provider: textOf(provider)?.split('.', 1)[0],
      ls_model_name: modelId,
      // Image, speech and transcription models have no messages.
      ls_model_type: modelType === 'chat' && !Array.isArray(prompt) ? 'llm' : modelType,
      ls_temperature: parameters.temperature,
      ls_max_tokens: parameters.max_tokens,
      ls_stop: parameters.stop,
      ls_invocation_params: definedOrNone(parameters),
    },
  };
}

/** Options of SDK functions that are recorded. Headers, callbacks, schemas and contexts are not recorded. */
const OPTIONS = [
  ...['system', 'value', 'values', 'query', 'documents', 'topN', 'schemaName', 'schemaDescription', 'enum'],
  ...['toolChoice', 'activeTools', 'maxOutputTokens', 'maxTokens', 'temperature', 'topP', 'topK'],
  ...['presencePenalty', 'frequencyPenalty', 'stopSequences', 'seed', 'reasoning'],
  ...['maxSteps', 'maxRetries', 'providerOptions'],
];

export function describeOperation(options: Fields): CallDescription {
  const { model, messages, tools } = options;
  const inputs: Fields = {};
  if (model !== undefined) inputs.model = typeof model === 'string' ? model : fieldsOf(model).modelId;
  if (messages !== undefined) inputs.messages = Array.isArray(messages) ? aiSdkMessages(messages) : messages;
  for (const key of OPTIONS) {
    const value = options[key];
    if (value !== undefined && typeof value !== 'function') inputs[key] = value;
  }
  Object.assign(inputs, mediaInputs(options));
  if (Array.isArray(inputs.prompt)) inputs.prompt = aiSdkMessages(inputs.prompt);
  if (tools !== undefined) inputs.tools = toolNames(tools);
  // AI SDK 7 renames the option.
  const telemetry = fieldsOf(options.telemetry ?? options.experimental_telemetry);
  const metadata = fieldsOf(telemetry.metadata);
  const { userId, threadId, sessionId, conversationId } = metadata;
  return {
    inputs,
    signal: signalOf(options.abortSignal),
    metadata: { ...metadata, function_id: textOf(telemetry.functionId) },
    ids: { user_id: idTextOf(userId), thread_id: idTextOf(threadId ?? sessionId ?? conversationId) },
    hiding: hidingOf(telemetry),
  };
}

export function hidingOf({ recordInputs, recordOutputs }: Fields): CallDescription['hiding'] {
  return hidingIf(recordInputs === false, recordOutputs === false);
}

export function describeExecution(input: unknown, options: Fields, hiding: CallDescription['hiding']): CallDescription {
  return {
    inputs: input as Fields,
    metadata: { tool_call_id: options.toolCallId },
    signal: signalOf(options.abortSignal),
    // The model writes the input and reads the output of a tool, so hiding one field of the model hides both.
    hiding: hiding && { hideInputs: true, hideOutputs: true },
  };
}

function toolNames(tools: unknown): unknown[] | undefined {
  if (Array.isArray(tools)) return tools.map((tool) => fieldsOf(tool).name);
  return tools === undefined || tools === null ? undefined : Object.keys(fieldsOf(tools));
}
