import type { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { maskOf } from '../secrets.ts';
import { LocalModel } from './local-model.ts';
import { ServiceModel } from './service-model.ts';

export interface ChosenModel {
  readonly model: BaseChatModel;
  readonly name: string;
  /** Whether it is the one without a model. */
  readonly isLocal: boolean;
}

const TIMEOUT_MS = 60_000;
/** A user waits, and can try again. */
const RETRIES_MAX = 1;

/** The model that the environment names, any that speaks OpenAI's interface, or the local one where it names none. */
export function chosenModel(env: NodeJS.ProcessEnv, wordDelayMs: number): ChosenModel {
  const { OPENAI_API_KEY: apiKey, OPENAI_BASE_URL: baseURL, OPENAI_MODEL: model = 'gpt-4o-mini' } = env;
  if (!(apiKey || baseURL)) return { model: new LocalModel({ wordDelayMs }), name: 'local rules', isLocal: true };
  return {
    // Servers of one's own ask for no key, and the client for one.
    model: new ServiceModel(
      {
        model,
        apiKey: apiKey || 'none',
        timeout: TIMEOUT_MS,
        maxRetries: RETRIES_MAX,
        ...(baseURL ? { configuration: { baseURL } } : {}),
      },
      maskOf([apiKey]),
    ),
    name: model,
    isLocal: false,
  };
}
