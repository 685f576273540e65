import {
  defined,
  definedOrNone,
  type Fields,
  fieldsOf,
  firstText,
  isFields,
  listOf,
  mapped,
  numberOf,
  textOf,
  without,
} from '../payload/fields.ts';

export interface RequestDescription {
  readonly inputs: Readonly<Fields>;
  readonly metadata: Readonly<Fields>;
  /** `thread_id` and `user_id`. */
  readonly ids: Readonly<Fields>;
}

export interface RequestFields {
  readonly modelType: 'chat' | 'llm' | 'embedding' | 'rerank';
  /** Keys in the request body that are recorded as inputs. All other keys are recorded as parameters. */
  readonly inputKeys: readonly string[];
  /** Converts the inputs. By default, inputs are recorded unchanged. */
  readonly inputs?: (body: Fields) => Fields;
  /** Keys of objects whose fields are recorded beside the other fields of the body. */
  readonly settings?: readonly string[];
}

/** Maps the names of parameters in some services to the names that other services use. */
const RENAMED: ReadonlyMap<string, string> = new Map([
  ['modelId', 'model'],
  ['inputText', 'input'],
  ['maxTokens', 'max_tokens'],
  ['maxTokenCount', 'max_tokens'],
  ['max_gen_len', 'max_tokens'],
  ['num_predict', 'max_tokens'],
  ['maxOutputTokens', 'max_output_tokens'],
  ['stopSequences', 'stop_sequences'],
  ['toolChoice', 'tool_choice'],
]);

/** Returns the fields of a request and of its `settings`, with the names that other services use. */
export function requestFields(given: unknown, settings: readonly string[] = []): Fields {
  const body = fieldsOf(given);
  const all = [without(body, new Set(settings)), ...settings.map((key) => fieldsOf(body[key]))].flatMap(Object.entries);
  return defined(Object.fromEntries(all.map(([key, value]) => [RENAMED.get(key) ?? key, value])));
}

/** Lists in a request body whose items may contain credentials. */
const SERVER_LISTS = ['tools', 'mcp_servers'];
const CREDENTIALS: ReadonlySet<string> = new Set(['authorization', 'authorization_token', 'headers']);

/** Returns a tool or server without credentials. Bedrock nests a tool in `toolSpec`. */
function withoutCredentials(server: unknown): unknown {
  const { toolSpec = server } = fieldsOf(server);
  const hasCredentials = isFields(toolSpec) && Object.keys(toolSpec).some((key) => CREDENTIALS.has(key));
  return hasCredentials ? without(toolSpec, CREDENTIALS) : toolSpec;
}

/** Describes a request. Background requests are not recorded, because their response does not contain the answer. */
export function describeRequest(
  given: unknown,
  provider: string,
  { inputKeys, modelType, inputs, settings }: RequestFields,
): RequestDescription | undefined {
  const body = requestFields(given, settings);
  if (body.background === true && body.stream !== true) return undefined;
  const parameters = without(body, new Set(inputKeys));
  for (const key of SERVER_LISTS) {
    if (parameters[key] !== undefined) parameters[key] = mapped(parameters[key], withoutCredentials);
  }
  const { max_completion_tokens, max_output_tokens, max_tokens } = body;
  const stop = body.stop ?? body.stop_sequences ?? undefined;
  return {
    inputs: inputs === undefined ? Object.fromEntries(inputKeys.map((key) => [key, body[key]])) : inputs(body),
    metadata: {
      ls_provider: provider,
      ls_model_type: modelType,
      ls_model_name: textOf(body.model) ?? textOf(body.agent),
      ls_temperature: numberOf(body.temperature),
      ls_max_tokens: numberOf(max_completion_tokens ?? max_output_tokens ?? max_tokens),
      ls_stop: typeof stop === 'string' ? [stop] : stop,
      ls_invocation_params: definedOrNone(parameters),
    },
    ids: {
      thread_id: firstText(body.conversation, fieldsOf(body.conversation).id),
      user_id: firstText(body.user, body.safety_identifier, fieldsOf(body.metadata).user_id),
    },
  };
}

/** Returns the messages of a request, with its instructions as the first message. */
export function withSystem(system: unknown, messages: unknown): unknown {
  return system === undefined ? messages : [{ role: 'system', content: system }, ...listOf(messages)];
}
