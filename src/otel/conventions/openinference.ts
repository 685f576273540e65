import { defined, type Fields, fieldsOf, filled, idTextOf, isFields, listOf } from '../../payload/fields.ts';
import { toolCall } from '../../services/chat.ts';
import { openInferenceCounts } from './genai-rows.ts';
import { inputValue, outputValue, tagList } from './general.ts';
import { foundDocument } from './model-messages.ts';
import { type Attributes, costValue, json, jsonFields, number, objects, same, text, texts } from './values.ts';
import { type Kind, kindsOf, NOTHING_NEW, type Vocabulary, WHOLE } from './vocabulary.ts';

const KIND = 'openinference.span.kind';

const KINDS: ReadonlyMap<string, Kind> = new Map<string, Kind>([
  ...kindsOf({
    llm: ['LLM'],
    chain: ['CHAIN', 'GUARDRAIL', 'EVALUATOR'],
    retriever: ['RETRIEVER', 'RERANKER'],
    embedding: ['EMBEDDING'],
    prompt: ['PROMPT'],
  }),
  ['AGENT', { runType: 'chain', nameFrom: 'agent.name' }],
  ['TOOL', { runType: 'tool', nameFrom: 'tool.name' }],
]);

/**
 * Mapping table for OpenInference, the convention of Arize's instrumentations:
 * https://github.com/Arize-ai/openinference/blob/main/spec/semantic_conventions.md
 */
export const openInference: Vocabulary = {
  name: 'openinference',
  namespaces: ['openinference'],
  matches: (attributes) => attributes[KIND] !== undefined,
  kindOf: (attributes) => KINDS.get(kindName(attributes) ?? '') ?? { runType: 'chain' },
  inputs: [
    ['llm.input_messages', 'messages', inputMessages, 'list'],
    ['llm.prompts', 'prompts', promptTexts, 'list'],
    ['embedding.embeddings', 'texts', embeddedTexts, 'list'],
    ['reranker.query', 'query', same],
    ['reranker.top_k', 'top_k', number],
    ['reranker.input_documents', 'documents', openInferenceDocuments, 'list'],
    ['llm.prompt_template.variables', WHOLE, renderedVariables],
    inputValue,
    ['input.images', 'images', imageUrls, 'list'],
    ['input.audio.url', 'audio.url', text],
    ['input.audio.mime_type', 'audio.mime_type', text],
    ['input.audio.transcript', 'audio.transcript', text],
    // Image and video URLs usually belong to the input, but may belong to the output.
    ['image.url', 'image.url', text],
    ['video.url', 'video.url', text],
    ['audio.url', 'audio.url', text],
    ['audio.mime_type', 'audio.mime_type', text],
    ['audio.transcript', 'audio.transcript', text],
    // `tool.parameters` is the schema of the tool in the specification. In some instrumentations, it contains the
    // arguments of the call.
    ['tool.parameters', WHOLE, json],
    ['llm.prompt_template.variables', WHOLE, json],
  ],
  outputs: [
    ['llm.output_messages', 'messages', openInferenceAnswers, 'list'],
    ['llm.choices', 'choices', completionTexts, 'list'],
    ['llm.function_call', 'function_call', json],
    ['retrieval.documents', 'documents', openInferenceDocuments, 'list'],
    ['reranker.output_documents', 'documents', openInferenceDocuments, 'list'],
    ['embedding.embeddings', 'embeddings', dimensions, 'list'],
    outputValue,
    ['output.images', 'images', imageUrls, 'list'],
    ['output.audio.url', 'audio.url', text],
    ['output.audio.mime_type', 'audio.mime_type', text],
    ['output.audio.transcript', 'audio.transcript', text],
  ],
  usage: [
    ...openInferenceCounts,
    ['llm.cost.prompt_details.input', 'input_cost_details.input', costValue],
    ['llm.cost.prompt_details.cache_read', 'input_cost_details.cache_read', costValue],
    ['llm.cost.prompt_details.cache_input', 'input_cost_details.cache_read', costValue],
    ['llm.cost.prompt_details.cache_write', 'input_cost_details.cache_creation', costValue],
    ['llm.cost.prompt_details.audio', 'input_cost_details.audio', costValue],
    ['llm.cost.completion_details.output', 'output_cost_details.output', costValue],
    ['llm.cost.completion_details.reasoning', 'output_cost_details.reasoning', costValue],
    ['llm.cost.completion_details.audio', 'output_cost_details.audio', costValue],
  ],
  parameters: [
    ['llm.tools', 'tools', toolSchemas, 'list'],
    ['llm.invocation_parameters', WHOLE, jsonFields, 'merged'],
    ['embedding.invocation_parameters', WHOLE, jsonFields, 'merged'],
  ],
  metadata: [
    ['llm.request.model_name', 'ls_model_name', text],
    ['llm.invocation_parameters', 'ls_model_name', requestedModel, 'kept'],
    ['llm.model_name', 'ls_model_name', text],
    ['llm.response.model_name', 'response_model', text],
    ['llm.model_name', 'response_model', respondingModel, 'repeats'],
    ['embedding.model_name', 'ls_model_name', text],
    ['reranker.model_name', 'ls_model_name', text],
    ['llm.provider', 'ls_provider', text],
    ['llm.system', 'ls_provider', text],
    ['llm.finish_reason', 'finish_reasons', texts],
    ['output.value', 'response_id', responseId, 'kept'],
    ['llm.prompt_template.template', 'template', text],
    ['llm.prompt_template.version', 'template_version', text],
    ['tool.id', 'tool_call_id', text],
    ['session.id', 'thread_id', idTextOf, 'kept'],
    ['session.id', 'session_id', idTextOf],
    ['user.id', 'user_id', idTextOf],
    ['metadata', WHOLE, jsonFields, 'merged'],
  ],
  tags: [tagList],
  // `embedding.vector` is only valid inside a list. Elsewhere, it would add thousands of numbers to the metadata.
  ignored: ['embedding.vector'],
};

function kindName(attributes: Attributes): string | undefined {
  return text(attributes[KIND])?.toUpperCase();
}

/** Returns the input messages. Those of agents and chains repeat a model call's, so `input.value` takes precedence. */
function inputMessages(value: unknown, attributes: Attributes): unknown {
  const isAround = KINDS.get(kindName(attributes) ?? '')?.runType === 'chain';
  return isAround && attributes['input.value'] !== undefined ? NOTHING_NEW : openInferenceMessages(value);
}

/** Placeholder for values that an `OPENINFERENCE_HIDE_…` variable hides. */
const REDACTED = '__REDACTED__';

/** Returns the prompts. In early versions of the OpenInference specification, prompts are plain text. */
function promptTexts(value: unknown): unknown[] | undefined {
  return filled(listOf(value).map((item) => (isFields(item) && isFields(item.prompt) ? item.prompt.text : item)));
}

function completionTexts(value: unknown): Fields[] | undefined {
  return filled(objects(value).map(({ completion }) => (isFields(completion) ? completion : { text: completion })));
}

function embeddedTexts(value: unknown): unknown[] | undefined {
  return filled(objects(value).flatMap(({ embedding }) => (isFields(embedding) ? (embedding.text ?? []) : [])));
}

/** Returns the length of each embedding vector. The vectors themselves are not recorded. */
function dimensions(value: unknown): Fields[] | undefined {
  return filled(
    objects(value).map(({ embedding }) => vectorOf(isFields(embedding) ? json(embedding.vector) : undefined)),
  );
}

function vectorOf(vector: unknown): Fields {
  if (Array.isArray(vector)) return { dimensions: vector.length };
  return vector === REDACTED ? { vector } : {};
}

/** Returns the variables of PROMPT spans. For other spans, a model call already records the rendered messages. */
function renderedVariables(value: unknown, attributes: Attributes): Fields | undefined {
  return kindName(attributes) === 'PROMPT' ? jsonFields(value) : undefined;
}

function imageUrls(value: unknown): unknown[] | undefined {
  return filled(objects(value).map(({ image }) => (isFields(image) ? image.url : image)));
}

function toolSchemas(value: unknown): unknown[] | undefined {
  return filled(objects(value).map(({ tool }) => (isFields(tool) ? schemaOf(tool) : tool)));
}

function schemaOf({ json_schema: schema, name, description }: Fields): unknown {
  if (schema !== undefined) return json(schema);
  return { type: 'function', function: defined({ name, description }) };
}

function requestedModel(parameters: unknown): string | undefined {
  return text(jsonFields(parameters)?.model);
}

/** Returns the model that answered, if it is not the requested one. Instrumentations set it when a call ends. */
function respondingModel(value: unknown, attributes: Attributes): unknown {
  const asked = text(attributes['llm.request.model_name']) ?? requestedModel(attributes['llm.invocation_parameters']);
  return asked === undefined || asked === value ? NOTHING_NEW : text(value);
}

/** Matches the id at the start of a service's answer. Parsing an answer takes much longer. */
const ANSWER_ID = /^\{\s*(?:"\w+":\s*"[^"\\]*",\s*){0,8}"id":\s*"([^"\\]+)"/;

/** Returns the id in a service's answer, which names the model that answered. Other outputs may contain any id. */
function responseId(value: unknown, attributes: Attributes): string | undefined {
  if (typeof value !== 'string' || kindName(attributes) !== 'LLM') return undefined;
  return value.includes(`"${attributes['llm.model_name']}"`) ? ANSWER_ID.exec(value)?.[1] : undefined;
}

/** Converts unflattened `llm.input_messages` and `llm.output_messages` to the model API format. */
function openInferenceMessages(value: unknown): Fields[] | undefined {
  return filled(objects(value).flatMap(({ message }) => (isFields(message) ? [messageOf(message)] : [])));
}

/** Converts the output messages. If there is exactly one message, `llm.finish_reason` is added. */
function openInferenceAnswers(value: unknown, attributes: Attributes): Fields[] | undefined {
  const messages = openInferenceMessages(value);
  const reason = text(attributes['llm.finish_reason']);
  if (messages?.length !== 1 || reason === undefined) return messages;
  return [{ finish_reason: reason, ...messages[0] }];
}

/** Converts `retrieval.documents` and the documents of a reranker. */
function openInferenceDocuments(value: unknown): Fields[] | undefined {
  const documents = objects(objects(value).map(({ document }) => document));
  return filled(documents.map(({ content, metadata, ...rest }) => foundDocument(content, metadata, rest)));
}

function messageOf(message: Fields): Fields {
  const { content, contents, tool_calls, function_call_name, function_call_arguments_json, ...rest } = message;
  const calls = objects(tool_calls).map(({ tool_call }) => toolCallOf(fieldsOf(tool_call)));
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

/** Some instrumentations set the text in `content` and all other blocks in `contents`. */
function contentOf(content: unknown, blocks: Fields[]): unknown {
  if (blocks.length === 0) return content;
  const words = text(content);
  if (words === undefined || blocks.some((block) => block.text === words)) return blocks;
  return [{ type: 'text', text: words }, ...blocks];
}

/** Converts a content block. The fields of a tool call are next to `message_content`, not inside it. */
function blockOf({ message_content, tool_call, ...others }: Fields): Fields {
  const { type, text: words, image, audio, video, ...rest } = fieldsOf(message_content);
  const known = { ...rest, ...others };
  if (isFields(tool_call)) return { ...toolUseOf(tool_call), ...known };
  if (type === 'reasoning') return defined({ type, reasoning: words, ...known });
  const url = isFields(image) && isFields(image.image) ? image.image.url : undefined;
  if (url !== undefined) return { type: 'image_url', image_url: { url }, ...known };
  return defined({
    type,
    text: words,
    image,
    audio: isFields(audio) ? (audio.audio ?? audio) : audio,
    video: isFields(video) ? (video.video ?? video) : video,
    ...known,
  });
}

function toolUseOf({ id, function: called, ...rest }: Fields): Fields {
  const { name, arguments: args } = fieldsOf(called);
  return defined({ type: 'tool_use', id, name, input: json(args), ...rest });
}

function toolCallOf({ id, function: called, ...rest }: Fields): Fields {
  const { name, arguments: args } = fieldsOf(called);
  return toolCall(id, name, args, rest);
}
