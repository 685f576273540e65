import { type Fields, fieldsOf, firstText, isFields, listOf, without } from '../payload/fields.ts';

/** A tool that a model may call, in a common format for all providers. */
export interface Tool {
  readonly name: string;
  readonly description?: string | undefined;
  /** JSON schema of the arguments, or the settings of a tool that the provider runs. */
  readonly parameters: unknown;
}

/** The recorded parts of a model call. */
export interface CallPayloads {
  readonly inputs: unknown;
  readonly extra?: Fields | undefined;
}

/** Keys of inputs that the conversation shows. All other inputs are parameters. */
const CONVERSATION: ReadonlySet<string> = new Set(
  `messages input prompt prompts contents system instructions systemInstruction system_instruction chat_history
  question query kwargs`.split(/\s+/),
);

/** Returns the parameters of a model call, including the tools. Integrations record them in the metadata or inputs. */
export function parametersOf({ inputs, extra = {} }: CallPayloads): Fields {
  const recorded = { ...fieldsOf(extra.invocation_params), ...fieldsOf(fieldsOf(extra.metadata).ls_invocation_params) };
  const all = { ...recorded, ...without(fieldsOf(inputs), CONVERSATION) };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined && value !== null));
}

/** Returns the tool definitions among the parameters of a model call. */
export function toolsOf({ tools, functions }: Fields): Tool[] {
  const declared = (tool: unknown): readonly unknown[] => {
    const { functionDeclarations, function_declarations } = fieldsOf(tool);
    const list = functionDeclarations ?? function_declarations;
    return Array.isArray(list) ? list : [tool];
  };
  // The AI SDK's functions take an object of tools by name.
  const named = Object.entries(fieldsOf(tools)).map(([name, tool]) => ({ name, ...fieldsOf(tool) }));
  return [...listOf(tools).flatMap(declared), ...named, ...listOf(functions)].map(toolOf);
}

function toolOf(tool: unknown): Tool {
  const given = fieldsOf(tool);
  const { name, description, parameters, input_schema, inputSchema, ...rest } = isFields(given.function)
    ? given.function
    : given;
  return {
    name: firstText(name, given.type, tool) ?? 'tool',
    description: firstText(description),
    parameters: parameters ?? input_schema ?? inputSchema ?? rest,
  };
}
