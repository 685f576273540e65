import { type Fields, fieldsOf, isFields, listOf, type Message, type Part, textOf } from './message.ts';
import { callOf, callsOf, partsOf, resultOf } from './message-parts.ts';

/** What a model was told, in the order of a conversation; undefined where no messages can be made out. */
export function messagesOfInputs(inputs: unknown): Message[] | undefined {
  const given = unwrapped(inputs);
  const found = listed(given) ?? ofInput(given);
  if (found === undefined) return undefined;
  const system = given.system ?? given.instructions ?? given.systemInstruction ?? given.system_instruction;
  const said = isFields(system) ? partsOf(system.parts ?? system) : partsOf(system);
  return said.length === 0 ? found : [{ role: 'system', parts: said }, ...found];
}

/** What a model answered. */
export function messagesOfOutputs(outputs: unknown): Message[] | undefined {
  const given = unwrapped(outputs);
  if (Array.isArray(given.choices)) return given.choices.map(choiceOf);
  if (Array.isArray(given.candidates)) return given.candidates.flatMap((one) => messagesOf([fieldsOf(one).content]));
  if (Array.isArray(given.generations)) return given.generations.flat(2).flatMap(generationOf);
  if (Array.isArray(given.output) && given.output.some(isItem)) return messagesOf(given.output);
  if (Array.isArray(given.messages)) return messagesOf(given.messages.flat());
  if (isMessage(given)) return messagesOf([given]);
  if (isMessage(given.message)) return messagesOf([given.message]);
  const text = [given.text, given.output, given.content, given.completion, given.answer].find((one) => textOf(one));
  const parts = [
    ...(textOf(given.reasoning) === undefined ? [] : [{ kind: 'reasoning', text: given.reasoning } as Part]),
    ...partsOf(text),
    ...callsOf(given),
    ...listOf(given.files).flatMap(partsOf),
  ];
  return parts.length === 0 ? undefined : [{ role: 'assistant', parts }];
}

/** Functions called with one message list, or with several arguments, keep what is asked of the model a level deeper. */
function unwrapped(value: unknown): Fields {
  const fields = fieldsOf(value);
  const inner = fields.input ?? fields.output ?? fields.outputs ?? fields.kwargs;
  const isOnly = Object.keys(fields).length === 1;
  if (isOnly && isFields(inner)) return inner;
  if (isOnly && Array.isArray(inner) && inner.some(isItem)) return { messages: inner };
  return fields;
}

function listed(given: Fields): Message[] | undefined {
  const list = [given.messages, given.contents, given.prompt, given.chat_history].find(
    (one) => Array.isArray(one) && one.flat().some(isItem),
  );
  // LangChain asks for several conversations at once, as a rule for one.
  return list === undefined ? undefined : messagesOf((list as unknown[]).flat());
}

function ofInput(given: Fields): Message[] | undefined {
  const input = given.input ?? given.prompt ?? given.contents ?? given.question ?? given.query;
  if (Array.isArray(input) && input.some(isItem)) return messagesOf(input);
  if (Array.isArray(given.prompts)) return given.prompts.map((one) => ({ role: 'user', parts: partsOf(one) }));
  return textOf(input) === undefined ? undefined : [{ role: 'user', parts: partsOf(input) }];
}

/** Whether a value is a message, or one of the items that Responses have beside messages. */
function isItem(value: unknown): boolean {
  return isMessage(value) || /^(function_call|reasoning|.*_call)(_output)?$/.test(`${fieldsOf(value).type}`);
}

function isMessage(value: unknown): boolean {
  const { role, content, parts, kwargs, type, data } = fieldsOf(value);
  if (typeof role === 'string') return true;
  if (isFields(kwargs) && 'content' in kwargs) return true;
  if (typeof type === 'string' && isFields(data) && 'content' in data) return true;
  return parts !== undefined || (content !== undefined && typeof type === 'string' && ROLES.has(type));
}

/** Roles by LangChain's types, and by Gemini's name. */
const ROLES: ReadonlyMap<string, string> = new Map([
  ['human', 'user'],
  ['ai', 'assistant'],
  ['AIMessageChunk', 'assistant'],
  ['model', 'assistant'],
  ['system', 'system'],
  ['tool', 'tool'],
  ['function', 'tool'],
  ['developer', 'system'],
]);

function messagesOf(list: readonly unknown[]): Message[] {
  return list.map(messageOf).filter(({ parts }) => parts.length > 0);
}

function messageOf(value: unknown): Message {
  if (typeof value === 'string') return { role: 'user', parts: partsOf(value) };
  const fields = bare(fieldsOf(value));
  const item = itemOf(fields);
  if (item !== undefined) return item;
  const role = roleOf(fields);
  const name = textOf(fields.name);
  const content = fields.content ?? fields.parts ?? fields.text;
  if (role === 'tool' && fields.parts === undefined) {
    const isListed = Array.isArray(content) && content.some((block) => /result/.test(`${fieldsOf(block).type}`));
    return { role, parts: isListed ? partsOf(content) : [resultOf(fields, content)] };
  }
  const reasoning = textOf(fields.reasoning_content) ?? textOf(fields.reasoning);
  const refusal = textOf(fields.refusal);
  const parts: Part[] = [
    ...(reasoning === undefined ? [] : [{ kind: 'reasoning', text: reasoning } as const]),
    ...partsOf(content),
    ...(refusal === undefined ? [] : [{ kind: 'refusal', text: refusal } as const]),
    ...withoutTwins(callsOf(fields), content),
  ];
  const shown = parts.length === 0 && Object.keys(fields).length > 2 ? [{ kind: 'other', value } as const] : parts;
  return { role, parts: shown, ...(name === undefined ? {} : { name }) };
}

/** LangChain's envelopes: `{ lc, type: 'constructor', id, kwargs }` of a serialized message, and `{ type, data }` of a stored one. */
function bare(fields: Fields): Fields {
  if (isFields(fields.kwargs)) {
    const type = `${listOf(fields.id).at(-1) ?? ''}`.replace(/Message(Chunk)?$/, '').toLowerCase();
    return { type, ...fields.kwargs, ...(type === '' ? {} : { role: fields.kwargs.role ?? type }) };
  }
  return isFields(fields.data) && textOf(fields.type) ? { ...fields.data, role: fields.type } : fields;
}

function roleOf(fields: Fields): string {
  const said = textOf(fields.role) ?? textOf(fields.type) ?? 'user';
  return ROLES.get(said) ?? said;
}

/** What stands beside messages in Responses. */
function itemOf(fields: Fields): Message | undefined {
  const type = `${fields.type}`;
  if (fields.role !== undefined || type === 'message') return undefined;
  if (type === 'reasoning') return { role: 'assistant', parts: partsOf([fields]) };
  if (type.endsWith('_call_output')) return { role: 'tool', parts: [resultOf(fields, fields.output)] };
  if (!type.endsWith('_call')) return undefined;
  const isNamed = fields.name !== undefined || fields.arguments !== undefined;
  return { role: 'assistant', parts: isNamed ? [callOf(fields)] : [{ kind: 'other', value: fields }] };
}

/** Some libraries tell a call among the blocks and in a field of its own. */
function withoutTwins(calls: readonly Part[], content: unknown): readonly Part[] {
  const isTold = listOf(content).some((block) => /^tool[_-](use|call)$/.test(`${fieldsOf(block).type}`));
  return isTold ? [] : calls;
}

function choiceOf(choice: unknown): Message {
  const { message, text, delta } = fieldsOf(choice);
  return messageOf({ role: 'assistant', ...fieldsOf(message ?? delta ?? { content: text }) });
}

function generationOf(generation: unknown): Message[] {
  const { message, text } = fieldsOf(generation);
  if (message !== undefined) return messagesOf([message]);
  return textOf(text) === undefined ? [] : [{ role: 'assistant', parts: partsOf(text) }];
}
