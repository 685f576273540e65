import { defined, type Fields, filled, idTextOf, isFields } from '../../payload/fields.ts';
import { toolCall } from '../../services/chat.ts';
import { MODEL_TYPES } from './genai.ts';
import { foundDocument } from './model-messages.ts';
import {
  type Attributes,
  anyJson,
  countValue,
  hasNoFields,
  json,
  number,
  objects,
  same,
  text,
  texts,
  withThreadAndUser,
} from './values.ts';
import { type Kind, kindsOf, type Vocabulary, WHOLE } from './vocabulary.ts';

const NAME = 'traceloop.entity.name';
const WORKFLOW = 'traceloop.workflow.name';
const GUARDRAIL = 'gen_ai.guardrail.name';

const REQUESTS: ReadonlyMap<unknown, Kind> = new Map<unknown, Kind>(
  kindsOf({ llm: ['chat', 'completion'], embedding: ['embedding'], retriever: ['rerank'] }),
);

/** Names of the attributes and events that describe one vector: the query or a match. */
const VECTORS = ['db.query.embeddings', 'db.query.result', 'db.search.embeddings', 'db.search.result'];

/** Attributes that identify a vector search or a read by id. */
const SEARCHES: readonly string[] = [
  ...VECTORS,
  ...['db.vector.query.top_k', 'db.vector.query.result.matches_length', 'db.vector.get.selector'],
];

/** Attributes that identify a write to a vector database. */
const WRITES: readonly string[] = ['db.vector.add.count', 'db.vector.delete.count', 'db.vector.delete.selector'];

/**
 * Mapping table for Traceloop's OpenLLMetry. Covers attributes from the SDK and from instrumentations that have not
 * adopted the GenAI conventions. Instrumentations for vector databases report results as events (see
 * `attributesOfVectorEvent`).
 *
 * https://github.com/traceloop/openllmetry-js/blob/main/packages/ai-semantic-conventions/src/SemanticAttributes.ts
 * https://www.traceloop.com/docs/openllmetry/contributing/semantic-conventions
 */
export const traceloop: Vocabulary = {
  name: 'traceloop',
  namespaces: ['traceloop', 'gen_ai', 'llm', 'db'],
  kindOf,
  inputs: [
    ['gen_ai.prompt', 'messages', traceloopMessages, 'list'],
    ['gen_ai.prompt', WHOLE, json],
    ['traceloop.entity.input', WHOLE, callInputs],
    ['gen_ai.guardrail.input', WHOLE, anyJson],
    ['db.vector.table_name', 'collection', text],
    ['db.vector.query.top_k', 'top_k', number],
    ['db.vector.query.id', 'id', same],
    ['db.vector.query.metadata_filter', 'filter', json],
    ['db.vector.query.include_metadata', 'include_metadata', same],
    ['db.vector.query.include_values', 'include_values', same],
    ['db.vector.query.embeddings.vector', 'embeddings', embedded],
    ['db.query.embeddings', 'embeddings', same],
    ['db.search.embeddings', 'embeddings', same],
    ['db.vector.get.selector', 'ids', json],
    ['db.vector.get.include_metadata', 'include_metadata', same],
    ['db.vector.get.include_values', 'include_values', same],
    ['db.vector.delete.selector', 'selector', json],
  ],
  outputs: [
    ['gen_ai.completion', 'messages', traceloopMessages, 'list'],
    ['gen_ai.completion', WHOLE, json],
    ['traceloop.entity.output', WHOLE, anyJson],
    ['gen_ai.guardrail.output', WHOLE, anyJson],
    ['db.query.result', 'documents', vectorDocuments],
    ['db.search.result', 'documents', vectorDocuments],
    ['db.vector.query.result', 'documents', vectorDocuments, 'list'],
  ],
  usage: [['llm.usage.total_tokens', 'total_tokens', countValue]],
  parameters: [
    ['llm.request.functions', 'tools', traceloopTools, 'list'],
    ['llm.top_k', 'top_k', number],
    ['llm.frequency_penalty', 'frequency_penalty', number],
    ['llm.presence_penalty', 'presence_penalty', number],
    ['llm.request.repetition_penalty', 'repetition_penalty', number],
    ['llm.chat.stop_sequences', 'stop', (value) => texts(json(value))],
    ['llm.is_streaming', 'stream', same],
  ],
  metadata: [
    ['llm.request.type', 'ls_model_type', (value) => MODEL_TYPES.get(value), 'kept'],
    ['gen_ai.completion', 'finish_reasons', (value) => texts(objects(value).map((one) => one.finish_reason)), 'kept'],
    ['llm.response.id', 'response_id', text],
    ['llm.response.finish_reason', 'finish_reasons', texts],
    ['llm.response.stop_reason', 'finish_reasons', texts],
    ['llm.user', 'user_id', idTextOf],
    ['traceloop.association.properties', WHOLE, associations, 'below'],
  ],
  // Headers may contain API keys. Only the length of vectors is recorded.
  ignored: ['llm.headers', 'db.vector.query.embeddings.vector'],
};

function kindOf(attributes: Attributes): Kind {
  const kind = attributes['traceloop.span.kind'];
  if (kind !== undefined) {
    // On a workflow span, frameworks set only the workflow name. On all other spans, this attribute names the enclosing
    // workflow.
    const isUnnamed = kind === 'workflow' && attributes[NAME] === undefined;
    return { runType: kind === 'tool' ? 'tool' : 'chain', nameFrom: isUnnamed ? WORKFLOW : NAME };
  }
  if (attributes[GUARDRAIL] !== undefined) return { runType: 'chain', nameFrom: GUARDRAIL };
  const request = REQUESTS.get(attributes['llm.request.type']);
  if (request !== undefined) return request;
  if (SEARCHES.some((name) => attributes[name] !== undefined)) return { runType: 'retriever' };
  // The spans do not name the operation, so writes are detected by attributes.
  return WRITES.some((name) => attributes[name] !== undefined) ? { runType: 'chain' } : {};
}

function associations(value: unknown): Fields | undefined {
  return isFields(value) ? withThreadAndUser(value) : undefined;
}

function embedded(value: unknown): Fields[] | undefined {
  const dimensions = dimensionsOf(value);
  return dimensions === undefined ? undefined : [{ dimensions }];
}

/** Converts unflattened `gen_ai.prompt` and `gen_ai.completion` to the model API format. */
function traceloopMessages(value: unknown): Fields[] | undefined {
  return filled(objects(value).map(messageOf));
}

/** Converts `llm.request.functions` to the model API format. */
function traceloopTools(value: unknown): Fields[] | undefined {
  const tools = objects(value).map(({ name, description, parameters, arguments: args }) => ({
    type: 'function',
    function: defined({ name, description, parameters: json(parameters ?? args) }),
  }));
  return filled(tools);
}

/**
 * Converts function arguments of the form `{ args, kwargs }`. The SDK puts a single object into `kwargs`. Inputs that a
 * framework sets directly are returned unchanged.
 */
function callInputs(value: unknown): unknown {
  const given = anyJson(value);
  if (!isFields(given) || !Array.isArray(given.args)) return given;
  const { args, kwargs, ...rest } = given;
  if (!hasNoFields(rest)) return given;
  if (args.length === 0) return kwargs === undefined ? {} : kwargs;
  if (kwargs !== undefined && !(isFields(kwargs) && hasNoFields(kwargs))) return given;
  if (args.length > 1) return { args };
  // LangChain's tools set no `kwargs` and pass one argument as JSON text.
  return kwargs === undefined ? json(args[0]) : args[0];
}

/** Converts the matches from a vector database. Only the length of each vector is recorded. */
function vectorDocuments(value: unknown): Fields[] | undefined {
  const documentOf = ({ document, metadata, entity, values, sparse: _, ...rest }: Fields): Fields =>
    foundDocument(document, metadata ?? entity, defined({ dimensions: dimensionsOf(values), ...rest }));
  return filled(objects(value).map(documentOf));
}

/** Returns the length of a vector. A vector is a list, or a list as JSON text. */
export function dimensionsOf(vector: unknown): number | undefined {
  const given = json(vector);
  return Array.isArray(given) ? given.length : undefined;
}

/** Converts a message. Some instrumentations nest the role and content in `message`. */
function messageOf({ message, ...shallow }: Fields): Fields {
  const { content, tool_calls, function_call, ...rest } = isFields(message) ? { ...shallow, ...message } : shallow;
  const calls = objects(tool_calls).map(({ id, name, arguments: args, type: _, ...other }) =>
    toolCall(id, name, args, other),
  );
  return defined({ ...rest, content: contentOf(content), tool_calls: filled(calls), function_call });
}

/** Returns the content of a message. Content blocks are encoded as JSON text. */
function contentOf(content: unknown): unknown {
  const given = json(content);
  const isBlocks = Array.isArray(given) && given.length > 0 && given.every((item) => isFields(item) && 'type' in item);
  return isBlocks ? given : content;
}

/** Matches Pinecone's events with the metadata of a match. The match itself is reported in attributes. */
const MATCH_METADATA = /^pinecone\.query\.result\.(\d+)\.metadata$/;

/** Converts an event of a vector to attributes, whose values are lists with one item. Undefined for other events. */
export function attributesOfVectorEvent(name: string, attributes: Attributes): Fields | undefined {
  if (VECTORS.includes(name)) return { [name]: [vectorOf(name, attributes)] };
  const place = name.startsWith('pinecone.') ? MATCH_METADATA.exec(name)?.[1] : undefined;
  return place === undefined ? undefined : { [`db.vector.query.result.${place}.metadata`]: attributes };
}

function vectorOf(name: string, attributes: Attributes): Fields {
  const entries = Object.entries(attributes).map(([key, value]) => [
    key.startsWith(`${name}.`) ? key.slice(name.length + 1) : key,
    value,
  ]);
  const { vector, ...rest } = Object.fromEntries(entries) as Fields;
  return defined({ ...rest, dimensions: dimensionsOf(vector) });
}
