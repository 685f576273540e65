import { defined, type Fields, filled } from '../../payload/fields.ts';
import { contentOfBlocks, type MessagePart, messagesOfParts, toolCall, urlOfBase64 } from '../../services/chat.ts';
import { genAiMetadata, genAiParameters, genAiUsage, reasonsIn } from './genai-rows.ts';
import { foundDocument, isMessageList } from './model-messages.ts';
import { type Attributes, json, microseconds, number, objects, same, text } from './values.ts';
import { FIRST_TOKEN, type Kind, kindsOf, type Vocabulary, WHOLE } from './vocabulary.ts';

const OPERATION = 'gen_ai.operation.name';

const MEMORY_WRITES: readonly string[] = [
  ...['create_memory', 'update_memory', 'upsert_memory', 'delete_memory'],
  ...['create_memory_store', 'delete_memory_store'],
];

const OPERATIONS: ReadonlyMap<unknown, Kind> = new Map<unknown, Kind>([
  ...kindsOf({
    llm: ['chat', 'generate_content', 'text_completion', 'completion', 'fetch_response'],
    embedding: ['embeddings', 'embedding'],
    retriever: ['retrieval', 'rerank', 'search_memory'],
    tool: MEMORY_WRITES,
    // The conventions do not define `agent_step` and `handoff`. Without these entries, such spans would look like model
    // calls, because they name a model.
    chain: ['plan', 'agent_step', 'handoff'],
  }),
  ['execute_tool', { runType: 'tool', nameFrom: 'gen_ai.tool.name' }],
  ['create_agent', { runType: 'chain', nameFrom: 'gen_ai.agent.name' }],
  ['invoke_agent', { runType: 'chain', nameFrom: 'gen_ai.agent.name' }],
  ['invoke_workflow', { runType: 'chain', nameFrom: 'gen_ai.workflow.name' }],
  ['guard', { runType: 'chain', nameFrom: 'gen_ai.guardrail.name' }],
  ['guardrail.run', { runType: 'chain', nameFrom: 'gen_ai.guardrail.name' }],
]);

export const MODEL_TYPES: ReadonlyMap<unknown, string> = new Map<unknown, string>([
  ['chat', 'chat'],
  ['generate_content', 'chat'],
  ['text_completion', 'llm'],
  ['completion', 'llm'],
  ['embeddings', 'embedding'],
  ['embedding', 'embedding'],
]);

/**
 * Mapping table for OpenTelemetry's GenAI conventions: https://github.com/open-telemetry/semantic-conventions-genai
 *
 * Deprecated attribute names come after their replacements.
 */
export const genAi: Vocabulary = {
  name: 'gen_ai',
  namespaces: ['gen_ai', 'openai', 'anthropic'],
  kindOf,
  inputs: [
    ['gen_ai.input.messages', 'messages', genAiInputMessages],
    ['gen_ai.system_instructions', 'messages', genAiInstructions, 'repeats'],
    ['gen_ai.retrieval.query.text', 'query', text],
    ['gen_ai.retrieval.top_k', 'top_k', number],
    ['gen_ai.memory.query.text', 'query', text],
    ['gen_ai.memory.records', 'records', recordsGiven],
    ['gen_ai.tool.call.arguments', WHOLE, json],
    ['gen_ai.prompt', WHOLE, genAiText, 'repeats'],
    ['gen_ai.prompt.variable', 'prompt_variables', same, 'below'],
  ],
  outputs: [
    ['gen_ai.output.messages', 'messages', genAiOutputMessages],
    ['gen_ai.retrieval.documents', 'documents', genAiDocuments],
    ['gen_ai.memory.records', 'documents', recordsFound],
    ['gen_ai.tool.call.result', WHOLE, json],
    ['gen_ai.completion', WHOLE, genAiText, 'repeats'],
  ],
  usage: genAiUsage,
  parameters: genAiParameters,
  metadata: [[OPERATION, 'ls_model_type', (value) => MODEL_TYPES.get(value), 'kept'], ...genAiMetadata],
  times: [['gen_ai.response.time_to_first_chunk', FIRST_TOKEN, microseconds(1_000_000), 'kept']],
  cleaned: ['gen_ai.skill.source.uri'],
};

/** Early versions name a workflow in `gen_ai.workflow.name`, and current versions in `gen_ai.agent.name`. */
function kindOf(attributes: Attributes): Kind {
  const kind = OPERATIONS.get(attributes[OPERATION]) ?? {};
  const isRenamed = kind.nameFrom === 'gen_ai.workflow.name' && attributes[kind.nameFrom] === undefined;
  return isRenamed ? { ...kind, nameFrom: 'gen_ai.agent.name' } : kind;
}

/** Returns the memory records that a search found. For other operations, the attribute contains records to store. */
function recordsFound(value: unknown, attributes: Attributes): unknown {
  return attributes[OPERATION] === 'search_memory' ? genAiDocuments(value) : undefined;
}

function recordsGiven(value: unknown, attributes: Attributes): unknown {
  return attributes[OPERATION] === 'search_memory' ? undefined : json(value);
}

/**
 * Converts `gen_ai.input.messages` from `{ role, parts }` to `{ role, content, tool_calls }`.
 * `gen_ai.system_instructions` becomes the first message. Parts of unknown types are not changed.
 */
export function genAiInputMessages(value: unknown, attributes: Attributes): Fields[] | undefined {
  const messages = objects(json(value)).flatMap(messagesOf);
  if (messages.length === 0) return undefined;
  const [instructions] = genAiInstructions(attributes['gen_ai.system_instructions']) ?? [];
  return instructions === undefined || isRepeatedBy(messages, instructions) ? messages : [instructions, ...messages];
}

/** Converts `gen_ai.output.messages`. `gen_ai.response.finish_reasons` provides the finish reasons that are missing. */
export function genAiOutputMessages(value: unknown, attributes: Attributes): Fields[] | undefined {
  const reasons = reasonsIn(attributes['gen_ai.response.finish_reasons']);
  const withReason = (message: Fields, at: number): Fields[] => messagesOf({ finish_reason: reasons[at], ...message });
  return filled(objects(json(value)).flatMap(withReason));
}

/** Converts the system instructions to a system message. Most instrumentations set a list of parts, some plain text. */
function genAiInstructions(value: unknown): Fields[] | undefined {
  const given = json(value);
  const content = text(given) ?? contentOfBlocks(objects(given).map(blockOf));
  return content === undefined ? undefined : [{ role: 'system', content }];
}

/** Converts `gen_ai.prompt` and `gen_ai.completion` from early versions: messages, other JSON or plain text. */
function genAiText(value: unknown): unknown {
  if (text(value) === undefined) return undefined;
  const given = json(value);
  return isMessageList(given) ? given.flatMap(messagesOf) : given;
}

/** Converts `gen_ai.retrieval.documents` and the memory records that a search found. */
function genAiDocuments(value: unknown): Fields[] | undefined {
  return filled(objects(json(value)).map(({ content, metadata, ...rest }) => foundDocument(content, metadata, rest)));
}

/** Returns whether the first message repeats the system instructions, as in some instrumentations. */
function isRepeatedBy([first]: readonly Fields[], instructions: Fields): boolean {
  return first?.role === 'system' && JSON.stringify(first.content) === JSON.stringify(instructions.content);
}

/** Converts a message. Each tool response becomes a separate message. */
function messagesOf({ parts, ...message }: Fields): Fields[] {
  return Array.isArray(parts) ? messagesOfParts(message, objects(parts).map(partOf)) : [defined(message)];
}

function partOf(part: Fields): MessagePart {
  if (part.type === 'tool_call') return { call: toolCallOf(part) };
  return part.type === 'tool_call_response' ? { result: toolResultOf(part) } : { block: blockOf(part) };
}

/** Converts a message part. Server-side tool calls, files and parts of unknown types are not changed. */
function blockOf(part: Fields): Fields {
  const { type, content, ...rest } = part;
  if (type === 'text') return defined({ type, text: content, ...rest });
  if (type === 'reasoning') {
    const { text: words, ...others } = rest;
    return defined({ type, reasoning: content ?? words, ...others });
  }
  if (type === 'uri' && part.modality === 'image') return { type: 'image_url', image_url: { url: part.uri } };
  if (type !== 'blob' || typeof content !== 'string') return part;
  const url = urlOfBase64(content, part.mime_type);
  return part.modality === 'image' ? { type: 'image_url', image_url: { url } } : { ...part, content: url };
}

/** Converts a tool call. OpenAI's `call_id` is preferred to `id`, because tool responses refer to `call_id`. */
function toolCallOf({ type: _, id, call_id, name, arguments: args, ...rest }: Fields): Fields {
  return toolCall(call_id ?? id, name, args, rest);
}

/** Converts a tool response. The schema of the conventions uses `response`, but their examples use `result`. */
function toolResultOf({ type: _, id, call_id, response, result, ...rest }: Fields): Fields {
  return defined({ role: 'tool', tool_call_id: call_id ?? id, content: response ?? result, ...rest });
}
