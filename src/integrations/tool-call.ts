import type { Fields } from './fields.ts';

/** A call of a tool as models write and read it: the arguments are JSON text. */
export function toolCall(id: unknown, name: unknown, args: unknown): Fields {
  return { id, type: 'function', function: { name, arguments: jsonOf(args) } };
}

/** What cannot be in JSON is left to the serializer of payloads. */
function jsonOf(value: unknown): unknown {
  try {
    return typeof value === 'string' ? value : JSON.stringify(value);
  } catch {
    return value;
  }
}
