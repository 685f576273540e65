import { openaiSdk } from '../integrations/openai/client.ts';
import { type MethodReader, type Sdk, wrapClient } from '../integrations/sdk-client.ts';
import { defined, type Fields, fieldsOf, isFields } from '../payload/fields.ts';
import type { CallDescription } from '../run/run.ts';
import { exporterOf } from './client.ts';
import { RunTree, type RunTreeConfig } from './run-tree.ts';
import { getCurrentRunTree } from './storage.ts';
import type { AnyFunction } from './types.ts';

/** A client of the `openai` package. */
export interface OpenAIType {
  chat: { completions: { create: AnyFunction } };
  completions: { create: AnyFunction };
}

/** Options for a single call, passed in the request options of the OpenAI SDK. */
export interface LangSmithExtra {
  langsmithExtra?: Pick<Partial<RunTreeConfig>, 'name' | 'metadata' | 'tags'>;
}

/** Overloads of `create` for a complete response, for a stream and for both. */
export type WithExtra<Create> = Create extends {
  (body: infer B1, options?: infer O1): infer R1;
  (body: infer B2, options?: infer O2): infer R2;
  (body: infer B3, options?: infer O3): infer R3;
}
  ? {
      (body: B1, options?: O1 & LangSmithExtra): R1;
      (body: B2, options?: O2 & LangSmithExtra): R2;
      (body: B3, options?: O3 & LangSmithExtra): R3;
    }
  : unknown;

/** A client whose calls accept `langsmithExtra` in their request options. */
export type PatchedOpenAIClient<Client extends OpenAIType> = Client & {
  chat: { completions: { create: WithExtra<Client['chat']['completions']['create']> } };
  completions: { create: WithExtra<Client['completions']['create']> };
};

/** Request parameters that LangSmith records as `ls_invocation_params`. */
const PARAMETERS: ReadonlySet<string> = new Set(
  `frequency_penalty n logit_bias logprobs modalities parallel_tool_calls prediction presence_penalty prompt_cache_key
  reasoning reasoning_effort response_format seed service_tier stream_options top_logprobs top_p truncation user verbosity
  web_search_options`.split(/\s+/),
);

/**
 * Traces the calls of an OpenAI client in LangSmith's format. The request body is recorded as inputs, and the response
 * as outputs. Like `wrapOpenAI` in `runspan/openai`, this function changes the client in place and also traces
 * embeddings and images.
 */
export function wrapOpenAI<Client extends OpenAIType>(
  openai: Client,
  options: Partial<RunTreeConfig> = {},
): PatchedOpenAIClient<Client> {
  const { tags, metadata, project_name } = options;
  const sdk = { ...openaiSdk, methods: methodsWith(options) };
  const exporter = exporterOf(options);
  return wrapClient(sdk, openai, defined({ tags, metadata, project: project_name, exporter })) as never;
}

function methodsWith(config: Partial<RunTreeConfig>): Sdk['methods'] {
  // LangSmith records only the model calls of `runTools`.
  const { 'chat.completions.runTools': _, ...methods } = openaiSdk.methods;
  const method = (path: string, usualName: string, parameters?: Fields) => ({
    [path]: asLangSmith(methods[path] as MethodReader, { ...config, name: config.name ?? usualName }, parameters),
  });
  return {
    ...methods,
    ...method('chat.completions.create', 'ChatOpenAI'),
    ...method('responses.create', 'ChatOpenAI', { use_responses_api: true }),
    ...method('completions.create', 'OpenAI'),
  };
}

/** Returns a copy of `call` that records the same name, inputs, outputs and metadata as LangSmith. */
function asLangSmith(call: MethodReader, config: RunTreeConfig, parameters?: Fields): MethodReader {
  return {
    ...call,
    name: config.name,
    describe(body, provider, options) {
      const described = call.describe(body, provider);
      return described && withExtra(describe(described, fieldsOf(body), provider, config, parameters), options);
    },
    read(response) {
      const answer = call.read(response);
      const { usage: _, ...outputs } = answer.outputs;
      return { ...answer, outputs };
    },
  };
}

function describe(
  { metadata }: CallDescription,
  body: Fields,
  provider: string,
  config: RunTreeConfig,
  parameters?: Fields,
): CallDescription {
  const { name } = config;
  const requested = isFields(body.metadata) ? body.metadata : {};
  const invocation = Object.entries(body).filter(([key]) => PARAMETERS.has(key));
  const agent = getCurrentRunTree(true) === undefined ? { ls_agent_type: 'root' } : {};
  return {
    inputs: body,
    name: provider === 'azure' ? name.replace(/^(Chat)?OpenAI$/, 'Azure$&') : name,
    metadata: {
      ...RunTree.inheritedMetadata(config),
      ...agent,
      ...requested,
      ...metadata,
      ls_invocation_params: { ...Object.fromEntries(invocation), ...parameters },
    },
  };
}

function withExtra(description: CallDescription, options: unknown): CallDescription {
  const { name, metadata, tags }: LangSmithExtra['langsmithExtra'] & {} = fieldsOf(fieldsOf(options).langsmithExtra);
  return {
    ...description,
    ...(typeof name === 'string' && { name }),
    metadata: { ...description.metadata, ...metadata },
    started: tags && ((run) => run.set({ tags })),
  };
}
