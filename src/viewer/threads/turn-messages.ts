import { fieldsOf, firstText } from '../../payload/fields.ts';
import { messagesOfInputs, messagesOfOutputs } from '../../services/conversation.ts';
import type { Message } from '../../services/message.ts';

/** Returns the input and the answer of a turn. Payloads often repeat the earlier messages of the conversation. */
export function messagesOfTurn(inputs: unknown, outputs: unknown): Message[] {
  return [...inputOf(inputs), ...answerOf(outputs)];
}

function inputOf(inputs: unknown): Message[] {
  const { input, question, query, message, prompt } = fieldsOf(inputs);
  const text = firstText(input, question, query, message, prompt);
  if (text !== undefined) return [{ role: 'user', parts: [{ kind: 'text', text }] }];
  const messages = messagesOfInputs(inputs) ?? plainMessage('user', inputs);
  const added = messages.slice(messages.findLastIndex(({ role }) => role === 'assistant') + 1);
  const shown = added.filter(({ role }) => role !== 'system');
  return shown.length > 0 ? shown : messages.slice(-1);
}

function answerOf(outputs: unknown): Message[] {
  const messages = messagesOfOutputs(outputs) ?? plainMessage('assistant', outputs);
  return messages.slice(messages.findLastIndex(({ role }) => role === 'user') + 1);
}

/** Shows the only text of a payload as text, and other payloads as JSON. */
function plainMessage(role: string, payload: unknown): Message[] {
  const [text, ...others] = Object.values(fieldsOf(payload));
  if (text === undefined) return [];
  const isText = typeof text === 'string' && others.length === 0;
  return [{ role, parts: [isText ? { kind: 'text', text } : { kind: 'other', value: payload }] }];
}
