import { randomUUID } from 'node:crypto';
import type { CallbackManagerForLLMRun } from '@langchain/core/callbacks/manager';
import type { BaseChatModel } from '@langchain/core/language_models/chat_models';
import type { BaseMessage } from '@langchain/core/messages';
import { ChatOpenAI, ChatOpenAICompletions, type ChatOpenAIFields, type OpenAIClient } from '@langchain/openai';
import { withoutKeys } from '../errors.ts';
import { checkUrl } from '../traces.ts';
import { LocalModel } from './local-model.ts';

export interface ChosenModel {
  readonly model: BaseChatModel;
  readonly name: string;
  /** Whether the built-in rules answer instead of a model. */
  readonly isLocal: boolean;
}

const TIMEOUT_MS = 60_000;
/** Maximum number of retries. The number is low, because a user is waiting and can try again. */
const RETRIES_MAX = 1;

/**
 * Returns the model that the environment variables select, from any provider with OpenAI's interface. If no model is
 * selected, built-in rules answer.
 */
export function chooseModel(env: NodeJS.ProcessEnv, wordDelayMs: number): ChosenModel {
  const { OPENAI_API_KEY: apiKey, OPENAI_BASE_URL: baseURL, OPENAI_MODEL: model = 'gpt-4o-mini' } = env;
  if (!(apiKey || baseURL)) return { model: new LocalModel({ wordDelayMs }), name: 'local rules', isLocal: true };
  if (baseURL) checkUrl('OPENAI_BASE_URL', baseURL, 'OPENAI_API_KEY');
  const options = {
    model,
    // A local server needs no key, but the client library requires one.
    apiKey: apiKey || 'none',
    timeout: TIMEOUT_MS,
    maxRetries: RETRIES_MAX,
    ...(baseURL ? { configuration: { baseURL } } : {}),
  };
  return { model: new ProviderModel(options), name: model, isLocal: false };
}

type CallOptions = ChatOpenAI['ParsedCallOptions'];

/**
 * A model of a provider with OpenAI's interface, whose errors can be shown to users and whose message ids are unique.
 */
export class ProviderModel extends ChatOpenAI {
  readonly #options: ChatOpenAIFields;

  constructor(options: ChatOpenAIFields) {
    super({ ...options, completions: new Completions(options) });
    this.#options = options;
  }

  /** `bindTools` calls this method. The inherited method would return a plain ChatOpenAI. */
  override withConfig(config: Partial<CallOptions>): ProviderModel {
    const model = new ProviderModel(this.#options);
    model.defaultOptions = { ...this.defaultOptions, ...config };
    return model;
  }

  override async *_streamChatModelEvents(
    messages: BaseMessage[],
    options: CallOptions,
    manager?: CallbackManagerForLLMRun,
  ): ReturnType<ChatOpenAI['_streamChatModelEvents']> {
    try {
      for await (const event of super._streamChatModelEvents(messages, options, manager)) {
        if (event.event === 'message-finish' && event.reason === undefined && !options.signal?.aborted)
          throw new Error(CLOSED);
        // A new id is set, because Ollama repeats its ids after some answers, and a message with a known id would
        // replace the earlier answer.
        yield event.event === 'message-start' ? { ...event, id: `run-${manager?.runId ?? randomUUID()}` } : event;
      }
    } catch (error) {
      throw options.signal?.aborted ? error : toModelError(error as Error);
    }
  }
}

type Chunk = OpenAIClient.Chat.Completions.ChatCompletionChunk;

class Completions extends ChatOpenAICompletions {
  // biome-ignore lint/suspicious/noExplicitAny: The method is overloaded.
  override async completionWithRetry(request: any, options?: OpenAIClient.RequestOptions): Promise<any> {
    const completion = await super.completionWithRetry(request, options);
    return Symbol.asyncIterator in completion ? withRefusals(completion) : completion;
  }
}

/** Makes a refusal the text of the answer. LangChain ignores the field in which providers send it. */
async function* withRefusals(chunks: AsyncIterable<Chunk>): AsyncGenerator<Chunk> {
  let isRefused = false;
  for await (const chunk of chunks) {
    for (const choice of chunk.choices) {
      const { refusal } = choice.delta;
      if (refusal) choice.delta.content = refusal;
      isRefused ||= Boolean(refusal);
      if (isRefused && choice.finish_reason) choice.finish_reason = 'content_filter';
    }
    yield chunk;
  }
}

const CLOSED = 'The model provider closed the connection before the answer was complete.';

/**
 * Converts an error of the provider. Only its message is kept, because other fields contain the request with its key.
 */
function toModelError({ message, status }: Error & { readonly status?: number }): Error {
  if (status === 401) return new Error('The model provider rejected the API key (401). Check OPENAI_API_KEY.');
  return new Error(message === 'terminated' ? CLOSED : withoutKeys(message));
}
