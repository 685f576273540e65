import { defined, type Fields, filled, isFields } from '../../payload/fields.ts';
import { aiSdkFile, aiSdkMessages, aiSdkToolCall } from '../../services/ai-sdk/messages.ts';
import { type Attributes, anyJson, json, objects, text } from './values.ts';

/** Converts `ai.prompt.messages` to messages of the form `{ role, content, tool_calls }`. */
export function promptMessages(value: unknown): unknown[] | undefined {
  return filled(aiSdkMessages(objects(json(value))));
}

/** Converts `ai.prompt`, which contains the arguments `{ system, prompt, messages }` of an SDK function. */
export function aiSdkPrompt(value: unknown): Fields | undefined {
  const prompt = json(value);
  if (!isFields(prompt)) return undefined;
  const { messages, prompt: asked, ...rest } = prompt;
  return defined({ ...rest, prompt: promptMessages(asked) ?? asked, messages: promptMessages(messages) ?? messages });
}

export function aiSdkAnswer(_: unknown, attributes: Attributes): Fields[] {
  const given = (name: string): unknown => attributes[`ai.response.${name}`] ?? attributes[`ai.result.${name}`];
  const message = {
    role: 'assistant',
    content: text(given('text')) ?? text(given('object')),
    reasoning: text(given('reasoning')),
    tool_calls: filled(objects(json(given('toolCalls'))).map(aiSdkToolCall)),
    files: filled(objects(json(given('files'))).map(aiSdkFile)),
    finish_reason: text(attributes['ai.response.finishReason'] ?? attributes['ai.finishReason']),
  };
  return [defined(message)];
}

/** Parses the arguments of a tool. The arguments of dynamic tools are JSON text that is encoded twice. */
export function aiSdkArguments(value: unknown): unknown {
  return json(anyJson(value));
}
