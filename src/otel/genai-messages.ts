import { type Attributes, defined, type Fields, isObject, json, objects, text } from './values.ts';

/**
 * `gen_ai.input.messages`, with `gen_ai.system_instructions` in front. Messages come as `{ role, parts }` and leave in the
 * shape that models take: `{ role, content, tool_calls }`; a part of an unknown type stays as it is.
 */
export function genAiInputMessages(value: unknown, attributes: Attributes): Fields[] | undefined {
  const messages = objects(json(value)).flatMap(messagesOf);
  if (messages.length === 0) return undefined;
  return [...(genAiInstructions(attributes['gen_ai.system_instructions']) ?? []), ...messages];
}

/** `gen_ai.output.messages`, with the reasons of `gen_ai.response.finish_reasons` where a message has none. */
export function genAiOutputMessages(value: unknown, attributes: Attributes): Fields[] | undefined {
  const reasons = attributes['gen_ai.response.finish_reasons'];
  const messages = objects(json(value)).flatMap((message, at) =>
    messagesOf({ finish_reason: Array.isArray(reasons) ? reasons[at] : undefined, ...message }),
  );
  return messages.length === 0 ? undefined : messages;
}

/** A list of parts as in a message; some instrumentations give plain text. */
export function genAiInstructions(value: unknown): Fields[] | undefined {
  const given = json(value);
  const content = text(given) ?? contentOf(objects(given).map(blockOf));
  return content === undefined ? undefined : [{ role: 'system', content }];
}

/** `gen_ai.retrieval.documents` */
export function genAiDocuments(value: unknown): Fields[] | undefined {
  const documents = objects(json(value)).map(({ content, metadata, ...rest }) => ({
    page_content: text(content) ?? '',
    type: 'Document',
    metadata: { ...(isObject(metadata) ? metadata : defined({ metadata })), ...rest },
  }));
  return documents.length === 0 ? undefined : documents;
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
  const content = contentOf(blocks);
  if (content === undefined && calls.length === 0 && answers.length > 0) return answers;
  const own = defined({ ...rest, content, tool_calls: calls.length === 0 ? undefined : calls });
  return [own, ...answers];
}

function contentOf(blocks: Fields[]): unknown {
  if (blocks.length === 0) return undefined;
  const [first] = blocks;
  return blocks.length === 1 && first?.type === 'text' ? first.text : blocks;
}

function blockOf(part: Fields): Fields {
  const { type, content, ...rest } = part;
  if (type === 'text') return defined({ type, text: content, ...rest });
  if (type === 'reasoning') return defined({ type, reasoning: content, ...rest });
  if (type === 'uri' && part.modality === 'image') return { type: 'image_url', image_url: { url: part.uri } };
  return part;
}

function toolCallOf({ id, name, arguments: args }: Fields): Fields {
  const given = args === undefined || typeof args === 'string' ? args : JSON.stringify(args);
  return defined({ id, type: 'function', function: defined({ name, arguments: given }) });
}

/** The schema says `response`, its examples `result`. */
function toolAnswerOf({ id, response, result }: Fields): Fields {
  return defined({ role: 'tool', tool_call_id: id, content: response ?? result });
}
