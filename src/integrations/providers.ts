import { isLoopback } from '../config/checker.ts';

/** Model services by host name suffix. */
const PROVIDERS: readonly (readonly [suffix: string, provider: string])[] = [
  ['.openai.com', 'openai'],
  ['.openai.azure.com', 'azure'],
  ['.cognitiveservices.azure.com', 'azure'],
  ['.services.ai.azure.com', 'azure'],
  ['-aiplatform.googleapis.com', 'google_vertexai'],
  ['.aiplatform.googleapis.com', 'google_vertexai'],
  ['.anthropic.com', 'anthropic'],
  ['.cerebras.ai', 'cerebras'],
  ['.cohere.com', 'cohere'],
  ['.deepseek.com', 'deepseek'],
  ['.fireworks.ai', 'fireworks'],
  ['.generativelanguage.googleapis.com', 'google_genai'],
  ['.groq.com', 'groq'],
  ['.mistral.ai', 'mistralai'],
  ['.ollama.com', 'ollama'],
  ['.openrouter.ai', 'openrouter'],
  ['.perplexity.ai', 'perplexity'],
  ['.together.xyz', 'together'],
  ['.x.ai', 'xai'],
];

/** Matches host names of self-hosted servers, such as `litellm-proxy.example.com` or `ollama`. */
const OWN_SERVERS = /(?:^|[.-])(litellm|ollama|vllm)(?=[.-]|$)/;

/**
 * Default ports that identify self-hosted servers on a loopback host. On a remote host, only Ollama's default port is
 * distinctive enough.
 */
const OWN_PORTS: ReadonlyMap<string, string> = new Map([
  ['4000', 'litellm'],
  ['8000', 'vllm'],
]);
const OLLAMA_PORT = '11434';

export function serviceAt({ hostname }: URL): string | undefined {
  const host = `.${hostname}`;
  return PROVIDERS.find(([suffix]) => host.endsWith(suffix))?.[1];
}

/** Returns the model service or the type of self-hosted server at a URL. Returns undefined if the URL is unknown. */
export function providerAt(url: URL): string | undefined {
  const { hostname, port } = url;
  const known = serviceAt(url);
  if (known !== undefined) return known;
  if (port === OLLAMA_PORT) return 'ollama';
  return OWN_SERVERS.exec(hostname)?.[1] ?? (isLoopback(hostname) ? OWN_PORTS.get(port) : undefined);
}
