/** Services that speak OpenAI's protocol, by the end of their host name. */
const PROVIDERS: readonly (readonly [host: string, provider: string])[] = [
  ['openai.azure.com', 'azure'],
  ['cognitiveservices.azure.com', 'azure'],
  ['services.ai.azure.com', 'azure'],
  ['anthropic.com', 'anthropic'],
  ['deepseek.com', 'deepseek'],
  ['fireworks.ai', 'fireworks'],
  ['generativelanguage.googleapis.com', 'google_genai'],
  ['groq.com', 'groq'],
  ['mistral.ai', 'mistralai'],
  ['openrouter.ai', 'openrouter'],
  ['perplexity.ai', 'perplexity'],
  ['together.xyz', 'together'],
  ['x.ai', 'xai'],
];

/** Who answers a client: by its class, else by the host that it asks. A host that is not known stands before OpenAI. */
export function providerOf(client: object): string {
  if (client.constructor?.name === 'AzureOpenAI') return 'azure';
  const { baseURL } = client as { baseURL?: unknown };
  const host = typeof baseURL === 'string' && URL.canParse(baseURL) ? new URL(baseURL).hostname : '';
  return PROVIDERS.find(([known]) => host === known || host.endsWith(`.${known}`))?.[1] ?? 'openai';
}
