import { currentRun, traceable } from 'runspan';
import type { Message } from './prompt.ts';

/** A model with OpenAI's chat completions interface. */
export interface Model {
  readonly baseUrl: string;
  readonly apiKey: string | undefined;
  readonly name: string;
  /** Timeout for the whole answer, in milliseconds. */
  readonly timeoutMs: number;
}

const TIMEOUT_MS = 60_000;

/** Returns the model that the environment variables select. Returns undefined if they select none. */
export function modelFrom(env: NodeJS.ProcessEnv): Model | undefined {
  const { OPENAI_API_KEY: apiKey, OPENAI_BASE_URL: baseUrl, OPENAI_MODEL: name } = env;
  if (!apiKey && !baseUrl) return undefined;
  return {
    baseUrl: (baseUrl || 'https://api.openai.com/v1').replace(/\/+$/, ''),
    apiKey: apiKey || undefined,
    name: name || 'gpt-4o-mini',
    timeoutMs: TIMEOUT_MS,
  };
}

/** Asks the model. Rejects with an Error whose message is one line. */
export const askModel = traceable(
  async (model: Model, messages: readonly Message[]): Promise<string> => {
    const { choices, usage } = (await post(model, { model: model.name, messages })) as Completion;
    currentRun()?.set({
      usage: {
        ...(usage?.prompt_tokens === undefined ? {} : { input_tokens: usage.prompt_tokens }),
        ...(usage?.completion_tokens === undefined ? {} : { output_tokens: usage.completion_tokens }),
      },
    });
    const content = choices?.[0]?.message?.content;
    if (typeof content !== 'string') throw new Error(`The model at ${model.baseUrl} gave no answer`);
    return content;
  },
  {
    name: 'ask model',
    runType: 'llm',
    // Omits the key, which is in `model`.
    inputs: ([model, messages]) => ({ model: model.name, messages }),
    outputs: (content) => ({ messages: [{ role: 'assistant', content }] }),
  },
);

/** The fields to read from a response. Any of them may be missing or invalid. */
interface Completion {
  readonly choices?: readonly { readonly message?: { readonly content?: unknown } }[];
  readonly usage?: { readonly prompt_tokens?: number; readonly completion_tokens?: number };
}

async function post({ baseUrl, apiKey, timeoutMs }: Model, body: unknown): Promise<unknown> {
  let answer: Response;
  let text: string;
  try {
    answer = await fetch(`${baseUrl}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(apiKey ? { authorization: `Bearer ${apiKey}` } : {}) },
      body: JSON.stringify(body),
      // Following a redirect could send the key to another origin.
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
    });
    text = await answer.text();
  } catch (error) {
    const { name, message, cause } = error as Error;
    const reason = name === 'TimeoutError' ? `no response within ${timeoutMs / 1_000} s` : (reasonOf(cause) ?? message);
    throw new Error(`The model at ${baseUrl} cannot be reached: ${reason}`, { cause: error });
  }
  const parsed = parse(text) as { error?: { message?: unknown } } | null | undefined;
  if (!answer.ok) {
    const message = parsed?.error?.message;
    throw new Error(
      `The model at ${baseUrl} answered ${answer.status}${typeof message === 'string' ? `: ${message}` : ''}`,
    );
  }
  if (typeof parsed !== 'object' || parsed === null) throw new Error(`The model at ${baseUrl} answered no JSON object`);
  return parsed;
}

function reasonOf(cause: unknown): string | undefined {
  if (!(cause instanceof Error)) return undefined;
  return cause.message || (cause as NodeJS.ErrnoException).code;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
