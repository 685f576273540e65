import { isLoopback } from '../config/checker.ts';

/** Model services by host name suffix. */
const PROVIDERS: readonly (readonly [suffix: string, provider: string])[] = [
  ['.openai.com', 'openai'],
  ['.openai.azure.com', 'azure'],
  ['.cognitiveservices.azure.com', 'azure'],
  ['.services.ai.azure.com', 'azure'],
  ['-aiplatform.googleapis.com', 'google_vertexai'],
  ['.aiplatform.googleapis.com', 'google_vertexai'],
  ['.ai-gateway.vercel.sh', 'vercel'],
  ['.anthropic.com', 'anthropic'],
  ['.cerebras.ai', 'cerebras'],
  ['.cohere.com', 'cohere'],
  ['.dashscope.aliyuncs.com', 'dashscope'],
  ['.dashscope-intl.aliyuncs.com', 'dashscope'],
  ['.deepseek.com', 'deepseek'],
  ['.fireworks.ai', 'fireworks'],
  ['.generativelanguage.googleapis.com', 'google_genai'],
  ['.groq.com', 'groq'],
  ['.router.huggingface.co', 'huggingface'],
  ['.endpoints.huggingface.cloud', 'huggingface'],
  ['.integrate.api.nvidia.com', 'nvidia'],
  ['.minimax.io', 'minimax'],
  ['.minimaxi.com', 'minimax'],
  ['.mistral.ai', 'mistralai'],
  ['.moonshot.ai', 'moonshot'],
  ['.moonshot.cn', 'moonshot'],
  ['.ollama.com', 'ollama'],
  ['.openrouter.ai', 'openrouter'],
  ['.perplexity.ai', 'perplexity'],
  ['.sambanova.ai', 'sambanova'],
  ['.together.xyz', 'together'],
  ['.x.ai', 'xai'],
  ['.z.ai', 'zai'],
  ['.open.bigmodel.cn', 'zhipuai'],
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

export function serviceAt({ hostname }: Pick<URL, 'hostname'>): string | undefined {
  const host = `.${hostname}`;
  return PROVIDERS.find(([suffix]) => host.endsWith(suffix))?.[1];
}

/** Returns the model service or the type of self-hosted server at a URL. Returns undefined if the URL is unknown. */
export function providerAt(url: URL): string | undefined {
  const { hostname, port, pathname } = url;
  const known = serviceAt(url);
  if (known !== undefined) return known;
  if (port === OLLAMA_PORT) return 'ollama';
  const own = OWN_SERVERS.exec(hostname)?.[1] ?? (isLoopback(hostname) ? OWN_PORTS.get(port) : undefined);
  // A resource of Azure may have a host name of its owner.
  return own ?? (pathname.includes('/openai/deployments/') ? 'azure' : undefined);
}
