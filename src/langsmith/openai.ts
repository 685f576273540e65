import { openaiSdk } from '../integrations/openai/client.ts';
import { type MethodReader, wrapClient } from '../integrations/sdk-client.ts';
import { defined, type Fields, fieldsOf, isFields, textOf } from '../payload/fields.ts';
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
  const { tags, metadata, project_name: project } = options;
  // LangSmith records only the model calls of `runTools`.
  const { 'chat.completions.runTools': _, ...usual } = openaiSdk.methods;
  const method = (path: string, name: string, parameters?: Fields) => ({
    [path]: asLangSmith(usual[path] as MethodReader, { ...options, name: options.name ?? name }, parameters),
  });
  const methods = {
    ...usual,
    ...method('chat.completions.create', 'ChatOpenAI'),
    ...method('responses.create', 'ChatOpenAI', { use_responses_api: true }),
    ...method('completions.create', 'OpenAI'),
  };
  const exporter = exporterOf(options);
  return wrapClient({ ...openaiSdk, methods }, openai, defined({ tags, metadata, project, exporter })) as never;
}

/** Returns a copy of `call` that records the same name, inputs, outputs and metadata as LangSmith. */
function asLangSmith(call: MethodReader, config: RunTreeConfig, parameters?: Fields): MethodReader {
  return {
    ...call,
    name: config.name,
    describe(body, provider, options) {
      const described = call.describe(body, provider);
      if (described === undefined) return undefined;
      const extra: LangSmithExtra['langsmithExtra'] & {} = fieldsOf(fieldsOf(options).langsmithExtra);
      const inputs = fieldsOf(body);
      const invocation = Object.entries(inputs).filter(([key]) => PARAMETERS.has(key));
      const name = provider === 'azure' ? config.name.replace(/^(Chat)?OpenAI$/, 'Azure$&') : config.name;
      return {
        inputs,
        name: textOf(extra.name) ?? name,
        metadata: {
          ...RunTree.inheritedMetadata(config),
          ...(getCurrentRunTree(true) === undefined && { ls_agent_type: 'root' }),
          ...(isFields(inputs.metadata) && inputs.metadata),
          ...described.metadata,
          ls_invocation_params: { ...Object.fromEntries(invocation), ...parameters },
          ...extra.metadata,
        },
        started: extra.tags && ((run) => run.set(defined({ tags: extra.tags }))),
      };
    },
    read(response) {
      const answer = call.read(response);
      const { usage: _, ...outputs } = answer.outputs;
      return { ...answer, outputs };
    },
  };
}
