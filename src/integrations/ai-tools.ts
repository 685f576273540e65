import { tracedBy } from '../instrument/traceable.ts';
import { type Fields, fieldsOf, isPlainObject } from './fields.ts';

/**
 * The tools of a call with every `execute` traced. Those given are not touched: what is handed on are copies, in which
 * `execute` still has the application's own tool as `this`. Only plain objects can be copied without a difference; a
 * tool that is an instance of a class is handed on as it is, and so is anything that is no record of tools.
 */
export function tracedTools(tools: unknown): unknown {
  if (!isPlainObject(tools)) return tools;
  const changes: Fields = {};
  for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(tools))) {
    const copy = tracedTool(name, value);
    if (copy !== undefined) changes[name] = copy;
  }
  return Object.keys(changes).length === 0 ? tools : copyWith(tools, changes);
}

function tracedTool(name: string, tool: unknown): Fields | undefined {
  if (!isPlainObject(tool) || known.has(tool)) return undefined;
  const execute: unknown = Object.getOwnPropertyDescriptor(tool, 'execute')?.value;
  if (typeof execute !== 'function') return undefined;
  const plan = { name, runType: 'tool', describe: describeExecution, aggregate: (chunks: unknown[]) => chunks.at(-1) };
  const copy = copyWith(tool, { execute: tracedBy(plan, execute.bind(tool)) });
  known.add(copy);
  return copy;
}

/** Tools that were made here: an agent hands its own on to `generateText`. */
const known = new WeakSet<object>();

function describeExecution([input, options]: unknown[]) {
  return { inputs: input as Fields, metadata: { tool_call_id: fieldsOf(options).toolCallId } };
}

/** A copy with other values in the place of some: a frozen object has properties that could not be changed later. */
function copyWith(object: Fields, changes: Fields): Fields {
  const properties = Object.getOwnPropertyDescriptors(object);
  for (const [key, value] of Object.entries(changes)) properties[key] = { ...properties[key], value };
  return Object.create(Object.getPrototypeOf(object), properties);
}
