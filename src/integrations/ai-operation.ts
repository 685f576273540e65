import type { CallDescription } from '../instrument/plan.ts';
import { messagesOf, toolNames } from './ai-prompt.ts';
import { type Fields, fieldsOf } from './fields.ts';

/** The options that say what is asked, and with which settings. Headers, callbacks, schemas and contexts are left out. */
const OPTIONS = [
  'system',
  'instructions',
  'prompt',
  'value',
  'values',
  'query',
  'documents',
  'topN',
  'schemaName',
  'schemaDescription',
  'enum',
  'toolChoice',
  'activeTools',
  'maxOutputTokens',
  'maxTokens',
  'temperature',
  'topP',
  'topK',
  'presencePenalty',
  'frequencyPenalty',
  'stopSequences',
  'seed',
  'reasoning',
  'maxSteps',
  'maxRetries',
  'providerOptions',
];

/** What a function of the SDK is called with. */
export function describeOperation(options: Fields): CallDescription {
  const { model, messages, tools } = options;
  const inputs: Fields = {};
  if (model !== undefined) inputs.model = typeof model === 'string' ? model : fieldsOf(model).modelId;
  if (messages !== undefined) inputs.messages = Array.isArray(messages) ? messagesOf(messages) : messages;
  for (const key of OPTIONS) {
    const value = options[key];
    if (value !== undefined && typeof value !== 'function') inputs[key] = value;
  }
  if (Array.isArray(inputs.prompt)) inputs.prompt = messagesOf(inputs.prompt);
  if (tools !== undefined) inputs.tools = toolNames(tools);
  return { inputs };
}
