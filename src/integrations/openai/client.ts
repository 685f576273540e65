import { isLoopback } from '../../base/options.ts';
import { type Sdk, type TracedClientOptions, unwrapClient, wrapClient } from '../sdk-client.ts';
import { openaiCalls as calls } from './calls.ts';

/**
 * The part of a client that is required for tracing. Clients of the `openai` package and of compatible packages have
 * it.
 */
export interface OpenAILike {
  readonly chat: { readonly completions: { create(...args: never[]): unknown } };
}

/**
 * The methods to trace. The SDK's helpers (`parse`, `stream`, `runTools`) call these methods, so they are traced too.
 */
const sdk: Sdk = {
  place: 'wrapOpenAI',
  client: 'a client of the openai package',
  requestIdHeader: 'x-request-id',
  providerOf,
  methods: {
    'chat.completions.create': calls.chat,
    'responses.create': calls.response,
    'beta.responses.create': calls.response,
    'responses.compact': calls.compaction,
    'beta.responses.compact': calls.compaction,
    'completions.create': calls.completion,
    'embeddings.create': calls.embeddings,
    'images.generate': calls.imageGeneration,
    'images.edit': calls.imageEdit,
    'images.createVariation': calls.imageVariation,
  },
};

/**
 * Traces the calls of a client of the `openai` package: chat completions, responses and their compaction, completions,
 * embeddings and images. Calls through helpers (`parse`, `stream`, `runTools`) are traced too. Each call becomes a run
 * below the current run. The client is changed in place and returned. The client still returns the SDK's own promises
 * and streams. Clients created with `withOptions` are traced too. A second call changes nothing. To change the options,
 * call `unwrapOpenAI` first.
 *
 * A value that is not such a client is returned unchanged, and a warning is logged.
 */
export function wrapOpenAI<Client extends OpenAILike>(client: Client, options?: TracedClientOptions): Client {
  return wrapClient(sdk, client, options);
}

/**
 * Restores the original methods of a wrapped client and returns the client. A run that is still open ends normally
 * afterwards.
 */
export function unwrapOpenAI<Client extends OpenAILike>(client: Client): Client {
  return unwrapClient(sdk, client);
}

/** Services that use OpenAI's protocol, by host name suffix. */
const PROVIDERS: readonly (readonly [host: string, provider: string])[] = [
  ['openai.azure.com', 'azure'],
  ['cognitiveservices.azure.com', 'azure'],
  ['services.ai.azure.com', 'azure'],
  ['anthropic.com', 'anthropic'],
  ['cerebras.ai', 'cerebras'],
  ['deepseek.com', 'deepseek'],
  ['fireworks.ai', 'fireworks'],
  ['generativelanguage.googleapis.com', 'google_genai'],
  ['groq.com', 'groq'],
  ['mistral.ai', 'mistralai'],
  ['ollama.com', 'ollama'],
  ['openrouter.ai', 'openrouter'],
  ['perplexity.ai', 'perplexity'],
  ['together.xyz', 'together'],
  ['x.ai', 'xai'],
];

/**
 * Matches the host names of self-hosted servers, for example `litellm-proxy.example.com`, or `ollama` in a Docker
 * Compose file.
 */
const OWN_SERVERS = /(?:^|[.-])(litellm|ollama|vllm)(?=[.-]|$)/;

/**
 * Default ports of these servers, which identify a server on a loopback host. Only Ollama's default port is distinctive
 * enough to identify a server on a remote host.
 */
const OWN_PORTS: ReadonlyMap<string, string> = new Map([
  ['4000', 'litellm'],
  ['8000', 'vllm'],
]);
const OLLAMA_PORT = '11434';

/** Determines the provider from the client's class, or else from its base URL. Returns `openai` for an unknown URL. */
function providerOf(client: object): string {
  if (client.constructor?.name === 'AzureOpenAI') return 'azure';
  const { baseURL } = client as { baseURL?: unknown };
  if (typeof baseURL !== 'string' || !URL.canParse(baseURL)) return 'openai';
  const { hostname, port } = new URL(baseURL);
  const known = PROVIDERS.find(([host]) => hostname === host || hostname.endsWith(`.${host}`))?.[1];
  if (known !== undefined) return known;
  if (port === OLLAMA_PORT) return 'ollama';
  const ofPort = isLoopback(hostname) ? OWN_PORTS.get(port) : undefined;
  return OWN_SERVERS.exec(hostname)?.[1] ?? ofPort ?? 'openai';
}
