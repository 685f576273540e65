import { defined, definedOrNone, type Fields, fieldsOf, filled, isFields, listOf } from '../../payload/fields.ts';
import { timestampUs } from '../../run/time.ts';
import { contentOfBlocks } from '../../services/chat.ts';
import { geminiMessages } from '../../services/gemini/messages.ts';
import { geminiUsage } from '../../services/gemini/usage.ts';
import { genAiInputMessages, genAiOutputMessages } from './genai.ts';
import { vocabularyOf } from './span-vocabulary.ts';
import { type Attributes, anyJson, countValue, json, jsonFields, objects, type Read } from './values.ts';
import { FIRST_TOKEN_AT, NOTHING_NEW, type Vocabulary, WHOLE } from './vocabulary.ts';

/** Attributes that Mastra adds to the GenAI conventions: https://mastra.ai/docs/observability/tracing/exporters/otel */
export const mastra: Vocabulary = {
  ...vocabularyOf('mastra', {
    attribute: 'mastra.span.type',
    runTypes: { client_tool_call: 'tool' },
    inputs: { 'mastra.*.input': WHOLE },
    outputs: { 'mastra.*.output': WHOLE },
    metadata: {
      'mastra.metadata.threadId': 'thread_id',
      'mastra.metadata.sessionId': 'thread_id',
      'mastra.metadata.userId': 'user_id',
      'mastra.metadata.resourceId': 'user_id',
      'mastra.metadata.*': WHOLE,
    },
    tags: ['mastra.tags'],
  }),
  times: [['mastra.completion_start_time', FIRST_TOKEN_AT, timestampUs, 'kept']],
};

const REQUEST = 'gcp.vertex.agent.llm_request';
const RESPONSE = 'gcp.vertex.agent.llm_response';

const adkTools = vocabularyOf('adk', {
  nameFrom: 'adk.workflow.name',
  inputs: { 'gcp.vertex.agent.tool_call_args': WHOLE, 'gcp.vertex.agent.data': WHOLE },
  outputs: { 'gcp.vertex.agent.tool_response': WHOLE },
  metadata: { 'gcp.vertex.agent.session_id': 'thread_id' },
});

/**
 * Attributes of Google's Agent Development Kit: https://google.github.io/adk-docs/
 *
 * Requests and responses are in the format of Gemini's API, with the names of its JavaScript or its Python SDK. They are
 * `{}` in spans of tools.
 */
export const adk: Vocabulary = {
  ...adkTools,
  inputs: [...(adkTools.inputs ?? []), [REQUEST, 'messages', adkRequest, 'repeats']],
  outputs: [...(adkTools.outputs ?? []), [RESPONSE, 'messages', adkResponse, 'repeats']],
  usage: [[RESPONSE, WHOLE, adkUsage, 'merged']],
  parameters: [[REQUEST, WHOLE, adkParameters, 'merged']],
};

/**
 * Attributes of pydantic-ai, whose version 2 of spans predates the GenAI conventions of tools:
 * https://ai.pydantic.dev/logfire/
 */
export const pydanticAi: Vocabulary = {
  ...vocabularyOf('pydantic_ai', {
    nameFrom: 'agent_name',
    outputs: { tool_response: WHOLE, final_result: WHOLE },
    metadata: { model_name: 'ls_model_name' },
  }),
  namespaces: ['logfire'],
  // The other names are too general. All spans of agents and tools have these attributes.
  matches: (attributes) =>
    attributes['logfire.msg'] !== undefined && (attributes.model_name ?? attributes['gen_ai.tool.name']) !== undefined,
  inputs: [
    ['tool_arguments', WHOLE, json],
    ['pydantic_ai.all_messages', 'messages', messagesBeforeAnswer],
    ['all_messages_events', 'messages', messagesBeforeAnswer],
  ],
  ignored: ['logfire.json_schema'],
};

const STARTED = 'gen_ai.event.start_time';

/**
 * Attributes and messages of Strands Agents: https://strandsagents.com/
 *
 * Messages contain blocks in the format of Bedrock's API. Spans of tools contain their arguments and results as messages.
 */
export const strands: Vocabulary = {
  ...vocabularyOf('strands', { metadata: { 'gen_ai.agent.tools': 'agent_tools' } }),
  namespaces: ['gen_ai'],
  matches: (attributes) => attributes[STARTED] !== undefined,
  inputs: [
    ['gen_ai.tool.call.arguments', WHOLE, json],
    ['gen_ai.input.messages', WHOLE, strandsArguments, 'repeats'],
    ['gen_ai.input.messages', 'messages', strandsMessages(genAiInputMessages)],
    ['gen_ai.agent.input', WHOLE, json],
    ['system_prompt', 'system_prompt', json],
  ],
  outputs: [
    ['gen_ai.tool.call.result', WHOLE, (value) => resultOf(json(value))],
    ['gen_ai.output.messages', WHOLE, strandsResult, 'repeats'],
    ['gen_ai.output.messages', 'messages', strandsMessages(genAiOutputMessages)],
  ],
  ignored: [STARTED, 'gen_ai.event.end_time'],
};

function adkRequest(value: unknown): Fields[] | typeof NOTHING_NEW {
  const { contents, config } = fieldsOf(json(value));
  const { systemInstruction, system_instruction } = fieldsOf(config);
  const given = systemInstruction ?? system_instruction;
  const system = typeof given === 'string' ? { parts: [{ text: given }] } : given;
  const instructions = geminiMessages(system).map((message) => ({ ...message, role: 'system' }));
  return filled([...instructions, ...listOf(contents).flatMap(geminiMessages)]) ?? NOTHING_NEW;
}

function adkResponse(value: unknown): Fields[] | typeof NOTHING_NEW {
  const { content, finishReason, finish_reason = finishReason, ...rest } = fieldsOf(json(value));
  const { errorCode, error_code = errorCode, errorMessage, error_message = errorMessage } = rest;
  const [message] = geminiMessages(content);
  const answer = defined({ ...message, finish_reason, error_code, error_message });
  return isFields(content) || error_code !== undefined ? [{ role: 'assistant', ...answer }] : NOTHING_NEW;
}

function adkParameters(value: unknown): Fields | undefined {
  const { temperature, tools } = fieldsOf(jsonFields(jsonFields(value)?.config));
  return definedOrNone({ temperature, tools });
}

function adkUsage(value: unknown): Fields | undefined {
  const { usageMetadata, usage_metadata = usageMetadata } = fieldsOf(json(value));
  return isFields(usage_metadata) ? { ...geminiUsage(usage_metadata) } : undefined;
}

/** Returns the messages that an agent got. The attribute also contains its own, from the index of new messages. */
function messagesBeforeAnswer(value: unknown, attributes: Attributes): Fields[] | undefined {
  const messages = objects(json(value)).map(({ 'event.name': _, 'gen_ai.message.index': __, ...message }) => message);
  const from = countValue(attributes['pydantic_ai.new_message_index']) ?? 0;
  const answer = messages.findIndex(({ role }, at) => at >= from && role === 'assistant');
  return genAiInputMessages(answer < 0 ? messages : messages.slice(0, answer), attributes);
}

function isTool(attributes: Attributes): boolean {
  return attributes['gen_ai.operation.name'] === 'execute_tool';
}

function strandsArguments(value: unknown, attributes: Attributes): unknown {
  const [message] = objects(json(value));
  if (!isTool(attributes) || message === undefined) return undefined;
  return objects(message.parts)[0]?.arguments ?? anyJson(message.content);
}

function strandsResult(value: unknown, attributes: Attributes): unknown {
  const [message] = objects(json(value));
  if (!isTool(attributes) || message === undefined) return undefined;
  return resultOf(objects(message.parts)[0]?.response ?? json(message.content));
}

/** Reads messages with blocks as messages of the GenAI conventions. Ignores messages that Strands has converted itself. */
function strandsMessages(read: Read): Read {
  return (value, attributes) => {
    const messages = objects(json(value));
    if (isTool(attributes) || messages.some(({ parts }) => parts !== undefined)) return undefined;
    const converted = messages.map(({ content, ...message }) => {
      const blocks = objects(json(content));
      return blocks.length === 0 ? defined({ ...message, content }) : { ...message, parts: blocks.map(partOf) };
    });
    return read(converted, attributes);
  };
}

function partOf(block: Fields): Fields {
  const { text, toolUse = block.type === 'toolUse' ? block : undefined, reasoning } = block;
  const { toolResult = block.type === 'toolResult' ? block : undefined } = block;
  if (typeof text === 'string') return { type: 'text', content: text };
  if (isFields(reasoning)) return { type: 'reasoning', content: reasoning.text };
  if (isFields(toolUse))
    return { type: 'tool_call', id: toolUse.toolUseId, name: toolUse.name, arguments: toolUse.input };
  if (!isFields(toolResult)) return block;
  return { type: 'tool_call_response', id: toolResult.toolUseId, response: resultOf(toolResult.content) };
}

/** Returns the result in the blocks of a tool result: a text, a JSON value or all blocks. */
function resultOf(content: unknown): unknown {
  const blocks = objects(content);
  if (blocks.length === 1 && blocks[0]?.json !== undefined) return blocks[0].json;
  return contentOfBlocks(blocks.map((block) => (typeof block.text === 'string' ? { type: 'text', ...block } : block)));
}
