/** How the key of a model service is named and sent. */
export interface ServiceKey {
  /** The environment variables that may contain the key. */
  readonly variables: readonly string[];
  readonly header: 'authorization' | 'x-api-key' | 'x-goog-api-key';
}

/** The key of a call, by the first word of its name, which is the format of the request. */
const FORMATS: Readonly<Record<string, ServiceKey>> = {
  openai: { variables: ['OPENAI_API_KEY'], header: 'authorization' },
  anthropic: { variables: ['ANTHROPIC_API_KEY'], header: 'x-api-key' },
  gemini: { variables: ['GEMINI_API_KEY', 'GOOGLE_GENERATIVE_AI_API_KEY'], header: 'x-goog-api-key' },
  cohere: { variables: ['CO_API_KEY', 'COHERE_API_KEY'], header: 'authorization' },
  mistral: { variables: ['MISTRAL_API_KEY'], header: 'authorization' },
  ollama: { variables: ['OLLAMA_API_KEY'], header: 'authorization' },
};

/** The only origins that may get the key in a variable, unless the user names others. A list is empty if no key is needed. */
const ORIGINS: Readonly<Record<string, readonly string[]>> = {
  'https://api.openai.com': ['OPENAI_API_KEY'],
  'https://api.anthropic.com': ['ANTHROPIC_API_KEY'],
  'https://generativelanguage.googleapis.com': ['GEMINI_API_KEY', 'GOOGLE_GENERATIVE_AI_API_KEY', 'GOOGLE_API_KEY'],
  'https://api.cohere.com': ['CO_API_KEY', 'COHERE_API_KEY'],
  'https://api.mistral.ai': ['MISTRAL_API_KEY'],
  'https://ai-gateway.vercel.sh': ['AI_GATEWAY_API_KEY'],
  'https://api.cerebras.ai': ['CEREBRAS_API_KEY'],
  'https://api.deepseek.com': ['DEEPSEEK_API_KEY'],
  'https://api.fireworks.ai': ['FIREWORKS_API_KEY'],
  'https://api.groq.com': ['GROQ_API_KEY'],
  'https://api.perplexity.ai': ['PERPLEXITY_API_KEY'],
  'https://api.together.ai': ['TOGETHER_API_KEY', 'TOGETHER_AI_API_KEY'],
  'https://api.together.xyz': ['TOGETHER_API_KEY', 'TOGETHER_AI_API_KEY'],
  'https://api.x.ai': ['XAI_API_KEY'],
  'https://openrouter.ai': ['OPENROUTER_API_KEY'],
  'https://ollama.com': ['OLLAMA_API_KEY'],
  'http://localhost:11434': [],
  'http://127.0.0.1:11434': [],
};

export const SERVICE_ORIGINS: readonly string[] = Object.keys(ORIGINS);

/** Returns the key of a call's format, for example of `openai.chat.completions`. */
export function keyOfFormat(call: string): ServiceKey | undefined {
  return FORMATS[call.split('.')[0] ?? ''];
}

/** Returns the variables with the key of an origin. Undefined if the origin is not that of a service in the table. */
export function keyVariables(origin: string): readonly string[] | undefined {
  return Object.hasOwn(ORIGINS, origin) ? ORIGINS[origin] : undefined;
}
