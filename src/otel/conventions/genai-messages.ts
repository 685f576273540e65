import { contentOfBlocks, foundDocument, isMessageList, toolCall, urlOfBase64 } from './model-messages.ts';
import { type Attributes, defined, type Fields, filled, json, objects, text } from './values.ts';

/**
 * `gen_ai.input.messages`, with `gen_ai.system_instructions` in front. Messages come as `{ role, parts }` and leave in the
 * shape that models take: `{ role, content, tool_calls }`; a part of an unknown type stays as it is.
 */
export function genAiInputMessages(value: unknown, attributes: Attributes): Fields[] | undefined {
  const messages = objects(json(value)).flatMap(messagesOf);
  if (messages.length === 0) return undefined;
  const [instructions] = genAiInstructions(attributes['gen_ai.system_instructions']) ?? [];
  return instructions === undefined || isSaidBy(messages, instructions) ? messages : [instructions, ...messages];
}

/** `gen_ai.output.messages`, with the reasons of `gen_ai.response.finish_reasons` where a message has none. */
export function genAiOutputMessages(value: unknown, attributes: Attributes): Fields[] | undefined {
  const reasons = attributes['gen_ai.response.finish_reasons'];
  const messages = objects(json(value)).flatMap((message, at) =>
    messagesOf({ finish_reason: Array.isArray(reasons) ? reasons[at] : undefined, ...message }),
  );
  return filled(messages);
}

/** A list of parts as in a message; some instrumentations give plain text. */
export function genAiInstructions(value: unknown): Fields[] | undefined {
  const given = json(value);
  const content = text(given) ?? contentOfBlocks(objects(given).map(blockOf));
  return content === undefined ? undefined : [{ role: 'system', content }];
}

/** `gen_ai.prompt` and `gen_ai.completion` of the first versions: messages, any other JSON, or plain text. */
export function genAiText(value: unknown): unknown {
  if (text(value) === undefined) return undefined;
  const given = json(value);
  return isMessageList(given) ? given.flatMap(messagesOf) : given;
}

/** `gen_ai.retrieval.documents`, and memory records that were found. */
export function genAiDocuments(value: unknown): Fields[] | undefined {
  return filled(objects(json(value)).map(({ content, metadata, ...rest }) => foundDocument(content, metadata, rest)));
}

/** Some instrumentations give the instructions a second time, as the first message. */
function isSaidBy([first]: readonly Fields[], instructions: Fields): boolean {
  return first?.role === 'system' && JSON.stringify(first.content) === JSON.stringify(instructions.content);
}

/** Answers of tools stand in messages of their own. */
function messagesOf(message: Fields): Fields[] {
  const { parts, ...rest } = message;
  if (!Array.isArray(parts)) return [defined(rest)];
  const calls: Fields[] = [];
  const answers: Fields[] = [];
  const blocks: Fields[] = [];
  for (const part of objects(parts)) {
    if (part.type === 'tool_call') calls.push(toolCallOf(part));
    else if (part.type === 'tool_call_response') answers.push(toolAnswerOf(part));
    else blocks.push(blockOf(part));
  }
  const content = contentOfBlocks(blocks);
  if (content === undefined && calls.length === 0 && answers.length > 0) return answers;
  const own = defined({ ...rest, content, tool_calls: filled(calls) });
  return [own, ...answers];
}

/** Tools that run at the model's provider, files and what else has no other shape stay as they are. */
function blockOf(part: Fields): Fields {
  const { type, content, ...rest } = part;
  if (type === 'text') return defined({ type, text: content, ...rest });
  if (type === 'reasoning') {
    const { text: words, ...others } = rest;
    return defined({ type, reasoning: content ?? words, ...others });
  }
  if (type === 'uri' && part.modality === 'image') return { type: 'image_url', image_url: { url: part.uri } };
  if (type === 'blob' && typeof content === 'string') return mediaOf(part, urlOfBase64(content, part.mime_type));
  return part;
}

function mediaOf(part: Fields, url: string): Fields {
  return part.modality === 'image' ? { type: 'image_url', image_url: { url } } : { ...part, content: url };
}

/** OpenAI's own id of a call, by which its answer is found, is not that of the item which the call came in. */
function toolCallOf({ type: _, id, call_id, name, arguments: args, ...rest }: Fields): Fields {
  return toolCall(call_id ?? id, name, args, rest);
}

/** The schema says `response`, its examples `result`. */
function toolAnswerOf({ type: _, id, call_id, response, result, ...rest }: Fields): Fields {
  return defined({ role: 'tool', tool_call_id: call_id ?? id, content: response ?? result, ...rest });
}
