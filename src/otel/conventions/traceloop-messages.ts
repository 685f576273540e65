import { foundDocument, toolCall } from './model-messages.ts';
import { anyJson, defined, type Fields, filled, isEmpty, isObject, json, objects, texts } from './values.ts';

/** `gen_ai.prompt` and `gen_ai.completion`, once unflattened, in the shape that models take. */
export function traceloopMessages(value: unknown): Fields[] | undefined {
  return filled(objects(value).map(messageOf));
}

/** Why the completions have ended. */
export function finishReasons(value: unknown): string[] | undefined {
  return texts(objects(value).map(({ finish_reason }) => finish_reason));
}

/** `llm.request.functions`, in the shape that models take. */
export function traceloopTools(value: unknown): Fields[] | undefined {
  const tools = objects(value).map(({ name, description, parameters, arguments: args }) => ({
    type: 'function',
    function: defined({ name, description, parameters: json(parameters ?? args) }),
  }));
  return filled(tools);
}

/**
 * What a function was called with: `{ args, kwargs }`, where the SDK puts a single object into `kwargs`. Frameworks put
 * their inputs in the same place, as they are.
 */
export function callInputs(value: unknown): unknown {
  const given = anyJson(value);
  if (!isObject(given) || !Array.isArray(given.args)) return given;
  const { args, kwargs, ...rest } = given;
  if (!isEmpty(rest)) return given;
  if (args.length === 0) return kwargs === undefined ? {} : kwargs;
  if (kwargs !== undefined && !(isObject(kwargs) && isEmpty(kwargs))) return given;
  if (args.length > 1) return { args };
  // LangChain's tools have no kwargs, and their arguments as JSON text.
  return kwargs === undefined ? json(args[0]) : args[0];
}

/** Matches of a vector database. Vectors are told by their length alone. */
export function vectorDocuments(value: unknown): Fields[] | undefined {
  return filled(objects(value).map(documentOf));
}

/** The length of a vector, which comes as a list or as JSON text of one. */
export function dimensionsOf(vector: unknown): number | undefined {
  const given = json(vector);
  return Array.isArray(given) ? given.length : undefined;
}

/** Some write the role and the content of a message one level deeper. */
function messageOf({ message, ...shallow }: Fields): Fields {
  const { content, tool_calls, function_call, ...rest } = isObject(message) ? { ...shallow, ...message } : shallow;
  const calls = filled(objects(tool_calls).map(toolCallOf));
  return defined({ ...rest, content: contentOf(content), tool_calls: calls, function_call });
}

/** Content that is no text stands there as JSON. */
function contentOf(content: unknown): unknown {
  const given = json(content);
  const isBlocks = Array.isArray(given) && given.length > 0 && given.every((item) => isObject(item) && 'type' in item);
  return isBlocks ? given : content;
}

function toolCallOf({ id, name, arguments: args, type: _, ...rest }: Fields): Fields {
  return toolCall(id, name, args, rest);
}

function documentOf({ document, metadata, entity, values, sparse: _, ...rest }: Fields): Fields {
  return foundDocument(document, metadata ?? entity, defined({ dimensions: dimensionsOf(values), ...rest }));
}
