import { isLoopback } from '../config/checker.ts';

const PROVIDERS: readonly (readonly [provider: string, suffixes: readonly string[]])[] = [
  ['openai', ['.openai.com']],
  ['azure', ['.openai.azure.com', '.cognitiveservices.azure.com', '.services.ai.azure.com']],
  ['google_vertexai', ['-aiplatform.googleapis.com', '.aiplatform.googleapis.com']],
  ['vercel', ['.ai-gateway.vercel.sh']],
  ['anthropic', ['.anthropic.com']],
  ['cerebras', ['.cerebras.ai']],
  ['cohere', ['.cohere.com']],
  ['dashscope', ['.dashscope.aliyuncs.com', '.dashscope-intl.aliyuncs.com']],
  ['deepseek', ['.deepseek.com']],
  ['fireworks', ['.fireworks.ai']],
  ['google_genai', ['.generativelanguage.googleapis.com']],
  ['groq', ['.groq.com']],
  ['huggingface', ['.router.huggingface.co', '.endpoints.huggingface.cloud']],
  ['nvidia', ['.integrate.api.nvidia.com']],
  ['minimax', ['.minimax.io', '.minimaxi.com']],
  ['mistralai', ['.mistral.ai']],
  ['moonshot', ['.moonshot.ai', '.moonshot.cn']],
  ['ollama', ['.ollama.com']],
  ['openrouter', ['.openrouter.ai']],
  ['perplexity', ['.perplexity.ai']],
  ['sambanova', ['.sambanova.ai']],
  ['together', ['.together.xyz']],
  ['xai', ['.x.ai']],
  ['zai', ['.z.ai']],
  ['zhipuai', ['.open.bigmodel.cn']],
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
  return PROVIDERS.find(([, suffixes]) => suffixes.some((suffix) => host.endsWith(suffix)))?.[0];
}

/** Returns the model service or the type of self-hosted server at a URL. Returns undefined if the URL is unknown. */
export function providerAt(url: URL): string | undefined {
  const { hostname, port, pathname } = url;
  const known = serviceAt(url);
  if (known !== undefined) return known;
  if (port === OLLAMA_PORT) return 'ollama';
  const own = OWN_SERVERS.exec(hostname)?.[1] ?? (isLoopback(hostname) ? OWN_PORTS.get(port) : undefined);
  // Azure resources may have a custom host name.
  return own ?? (pathname.includes('/openai/deployments/') ? 'azure' : undefined);
}
