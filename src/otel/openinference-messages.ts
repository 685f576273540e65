import { defined, type Fields, isObject, json, objects, text } from './values.ts';

/** Messages of `llm.input_messages` and `llm.output_messages`, once unflattened, in the shape that models take. */
export function openInferenceMessages(value: unknown): Fields[] | undefined {
  const messages = objects(value).flatMap(({ message }) => (isObject(message) ? [messageOf(message)] : []));
  return messages.length === 0 ? undefined : messages;
}

/** `retrieval.documents` and those of a reranker. */
export function openInferenceDocuments(value: unknown): Fields[] | undefined {
  const documents = objects(value).flatMap(({ document }) => (isObject(document) ? [documentOf(document)] : []));
  return documents.length === 0 ? undefined : documents;
}

function messageOf(message: Fields): Fields {
  const { contents, tool_calls, function_call_name, function_call_arguments_json, ...rest } = message;
  const blocks = objects(contents).map(({ message_content }) =>
    blockOf(isObject(message_content) ? message_content : {}),
  );
  const calls = objects(tool_calls).map(({ tool_call }) => toolCallOf(isObject(tool_call) ? tool_call : {}));
  return defined({
    ...rest,
    content: rest.content ?? (blocks.length === 0 ? undefined : blocks),
    tool_calls: calls.length === 0 ? undefined : calls,
    function_call:
      function_call_name === undefined
        ? undefined
        : defined({ name: function_call_name, arguments: function_call_arguments_json }),
  });
}

function blockOf(content: Fields): Fields {
  const { type, text: words, image, ...rest } = content;
  if (type === 'text') return defined({ type, text: words, ...rest });
  const url = isObject(image) && isObject(image.image) ? image.image.url : undefined;
  if (url !== undefined) return { type: 'image_url', image_url: { url }, ...rest };
  return defined({ type, text: words, image, ...rest });
}

function toolCallOf(call: Fields): Fields {
  const { id, function: called, ...rest } = call;
  const { name, arguments: args } = isObject(called) ? called : {};
  return defined({ id, type: 'function', function: defined({ name, arguments: args }), ...rest });
}

function documentOf(document: Fields): Fields {
  const { content, metadata, ...rest } = document;
  const known = json(metadata);
  const about = isObject(known) ? known : defined({ metadata: known });
  return { page_content: text(content) ?? '', type: 'Document', metadata: { ...about, ...rest } };
}
