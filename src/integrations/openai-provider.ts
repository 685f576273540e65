import { isLoopback } from '../base/options.ts';

/** Services that speak OpenAI's protocol, by the end of their host name. */
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
 * Matches the host names of self-hosted servers, for example `litellm-proxy.example.com`, or `ollama` in a compose
 * file.
 */
const OWN_SERVERS = /(?:^|[.-])(litellm|ollama|vllm)(?=[.-]|$)/;

/** Default ports of these servers, used for loopback hosts. Only Ollama's is distinctive enough for remote hosts. */
const OWN_PORTS: ReadonlyMap<string, string> = new Map([
  ['4000', 'litellm'],
  ['8000', 'vllm'],
]);
const OLLAMA_PORT = '11434';

/** Determines the provider from the client's class, or else from its base URL. Returns `openai` for an unknown URL. */
export function providerOf(client: object): string {
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
