import { tracedBy } from '../instrument/traceable.ts';
import { type Fields, fields } from './ai-fields.ts';

/**
 * The tools of a call with every `execute` traced. Those given are not touched: what is handed on are copies, in which
 * `execute` still has the application's own tool as `this`. Only plain objects can be copied without a difference; a
 * tool that is an instance of a class is handed on as it is, and so is anything that is no record of tools.
 */
export function tracedTools(tools: unknown): unknown {
  if (!isPlain(tools)) return tools;
  const copies = copyOf(tools);
  for (const name of Object.keys(tools)) {
    const property = Object.getOwnPropertyDescriptor(tools, name) as PropertyDescriptor;
    const copy = tracedTool(name, property.value);
    if (copy !== undefined) Object.defineProperty(copies, name, { ...property, value: copy });
  }
  return copies;
}

function tracedTool(name: string, tool: unknown): Fields | undefined {
  if (!isPlain(tool) || known.has(tool)) return undefined;
  const property = Object.getOwnPropertyDescriptor(tool, 'execute');
  if (typeof property?.value !== 'function') return undefined;
  const plan = { name, runType: 'tool', describe: describeExecution, aggregate: (chunks: unknown[]) => chunks.at(-1) };
  const copy = copyOf(tool);
  Object.defineProperty(copy, 'execute', { ...property, value: tracedBy(plan, property.value.bind(tool)) });
  known.add(copy);
  return copy;
}

/** Tools that were made here: an agent hands its own on to `generateText`. */
const known = new WeakSet<object>();

function describeExecution([input, options]: unknown[]) {
  return { inputs: input as Fields, metadata: { tool_call_id: fields(options).toolCallId } };
}

function copyOf(object: Fields): Fields {
  return Object.create(Object.getPrototypeOf(object), Object.getOwnPropertyDescriptors(object));
}

function isPlain(value: unknown): value is Fields {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
