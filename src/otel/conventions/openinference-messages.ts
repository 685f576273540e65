import { foundDocument, toolCall } from './model-messages.ts';
import { type Attributes, defined, type Fields, filled, isObject, json, objects, text } from './values.ts';

/** Messages of `llm.input_messages` and `llm.output_messages`, once unflattened, in the shape that models take. */
export function openInferenceMessages(value: unknown): Fields[] | undefined {
  return filled(objects(value).flatMap(({ message }) => (isObject(message) ? [messageOf(message)] : [])));
}

/** The same of what the model has answered; `llm.finish_reason` is that of the one message there is. */
export function openInferenceAnswers(value: unknown, attributes: Attributes): Fields[] | undefined {
  const messages = openInferenceMessages(value);
  const reason = text(attributes['llm.finish_reason']);
  if (messages?.length !== 1 || reason === undefined) return messages;
  return [{ finish_reason: reason, ...messages[0] }];
}

/** `retrieval.documents` and those of a reranker. */
export function openInferenceDocuments(value: unknown): Fields[] | undefined {
  return filled(objects(value).flatMap(({ document }) => (isObject(document) ? [documentOf(document)] : [])));
}

function messageOf(message: Fields): Fields {
  const { content, contents, tool_calls, function_call_name, function_call_arguments_json, ...rest } = message;
  const calls = objects(tool_calls).map(({ tool_call }) => toolCallOf(isObject(tool_call) ? tool_call : {}));
  return defined({
    ...rest,
    content: contentOf(content, objects(contents).map(blockOf)),
    tool_calls: filled(calls),
    function_call:
      function_call_name === undefined
        ? undefined
        : defined({ name: function_call_name, arguments: function_call_arguments_json }),
  });
}

/** Some instrumentations give the text of a message by itself and what else it has in the list. */
function contentOf(content: unknown, blocks: Fields[]): unknown {
  if (blocks.length === 0) return content;
  const words = text(content);
  if (words === undefined || blocks.some((block) => block.text === words)) return blocks;
  return [{ type: 'text', text: words }, ...blocks];
}

/** What a call of a tool is stands beside the content, and not in it. */
function blockOf({ message_content, tool_call, ...others }: Fields): Fields {
  const { type, text: words, image, audio, video, ...rest } = isObject(message_content) ? message_content : {};
  const known = { ...rest, ...others };
  if (isObject(tool_call)) return { ...toolUseOf(tool_call), ...known };
  if (type === 'reasoning') return defined({ type, reasoning: words, ...known });
  const url = isObject(image) && isObject(image.image) ? image.image.url : undefined;
  if (url !== undefined) return { type: 'image_url', image_url: { url }, ...known };
  return defined({
    type,
    text: words,
    image,
    audio: isObject(audio) ? (audio.audio ?? audio) : audio,
    video: isObject(video) ? (video.video ?? video) : video,
    ...known,
  });
}

function toolUseOf(call: Fields): Fields {
  const { id, function: called, ...rest } = call;
  const { name, arguments: args } = isObject(called) ? called : {};
  return defined({ type: 'tool_use', id, name, input: json(args), ...rest });
}

function toolCallOf(call: Fields): Fields {
  const { id, function: called, ...rest } = call;
  const { name, arguments: args } = isObject(called) ? called : {};
  return toolCall(id, name, args, rest);
}

function documentOf({ content, metadata, ...rest }: Fields): Fields {
  return foundDocument(content, metadata, rest);
}
