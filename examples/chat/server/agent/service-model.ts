import { randomUUID } from 'node:crypto';
import type { CallbackManagerForLLMRun } from '@langchain/core/callbacks/manager';
import type { BaseMessage } from '@langchain/core/messages';
import type { ChatGenerationChunk, ChatResult } from '@langchain/core/outputs';
import { AsyncCaller, classifyRateLimitError } from '@langchain/core/utils/async_caller';
import { ChatOpenAI, type ChatOpenAIFields } from '@langchain/openai';
import { textOf } from '../protocol/error-text.ts';
import type { Mask } from '../secrets.ts';

type CallOptions = ChatOpenAI['ParsedCallOptions'];
type Events = ReturnType<ChatOpenAI['_streamChatModelEvents']>;

const NO_ANSWER = 'The service of the model gave no answer; is OPENAI_BASE_URL right?';
const BROKEN_OFF = 'The service of the model broke off in the middle of its answer.';

/**
 * A model behind the interface of OpenAI. What its service fails with is told to readers, kept in checkpoints and sent to the traces: it is put here, where it comes from,
 * into words that are for all of them, and without the key.
 */
export class ServiceModel extends ChatOpenAI {
  readonly #fields: ChatOpenAIFields;
  readonly #mask: Mask;

  constructor(fields: ChatOpenAIFields, mask: Mask) {
    super({ onFailedAttempt, ...fields });
    this.#fields = fields;
    this.#mask = mask;
  }

  /** As it is done by the class above, which would make one of its own kind. */
  override withConfig(config: Partial<this['ParsedCallOptions']>): ServiceModel {
    const model = new ServiceModel(this.#fields, this.#mask);
    model.defaultOptions = { ...this.defaultOptions, ...config };
    return model;
  }

  override async _generate(
    messages: BaseMessage[],
    options: CallOptions,
    manager?: CallbackManagerForLLMRun,
  ): Promise<ChatResult> {
    try {
      const result = await super._generate(messages, options, manager);
      for (const { message } of result.generations) message.id = answerId(manager);
      return result;
    } catch (error) {
      throw this.#told(error, options);
    }
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    options: CallOptions,
    manager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    const id = answerId(manager);
    try {
      for await (const chunk of super._streamResponseChunks(messages, options, manager)) {
        chunk.message.id = id;
        yield chunk;
      }
    } catch (error) {
      throw this.#told(error, options);
    }
  }

  override async *_streamChatModelEvents(
    messages: BaseMessage[],
    options: CallOptions,
    manager?: CallbackManagerForLLMRun,
  ): Events {
    let isBegun = false;
    try {
      for await (const event of super._streamChatModelEvents(messages, options, manager)) {
        // The client ends a message that its service has not ended, and one that it has not begun, without a reason.
        if (event.event === 'message-finish' && event.reason === undefined && !options.signal?.aborted)
          throw new Error(isBegun ? BROKEN_OFF : NO_ANSWER);
        isBegun ||= event.event !== 'message-start';
        yield event.event === 'message-start' ? { ...event, id: answerId(manager) } : event;
      }
    } catch (error) {
      throw this.#told(error, options);
    }
  }

  /** Nothing of the error is kept but what it says: its other fields hold the request, with the key. */
  #told(error: unknown, { signal }: CallOptions): unknown {
    if (signal?.aborted || !(error instanceof Error)) return error;
    const { status } = error as { readonly status?: number };
    if (status === 401)
      return new ModelError(
        'The service of the model refuses the key of this chat (401): OPENAI_API_KEY has to be one of its keys.',
      );
    // What the client of HTTP says of a connection that was cut.
    if (error.message === 'terminated') return new ModelError(BROKEN_OFF);
    return new ModelError(this.#mask(textOf(error)));
  }
}

/** Those that services give come again, with Ollama one in 999, and in a state the later answer would take the place of the other. */
function answerId(manager: CallbackManagerForLLMRun | undefined): string {
  return `run-${manager?.runId ?? randomUUID()}`;
}

/** What LangChain does of itself with what has failed: it throws what is not to be tried again. */
class UsualCaller extends AsyncCaller {
  failed(error: unknown): void {
    this.onFailedAttempt?.(error);
  }
}

const usualCaller = new UsualCaller({});

/** LangChain takes a 429 that does not say when to come back for a reason to ask another service, which there is none of here. */
function onFailedAttempt(error: unknown): void {
  if (classifyRateLimitError(error)?.reason !== 'headerless_429') usualCaller.failed(error);
}

/** What the service of a model has failed with. */
export class ModelError extends Error {
  override readonly name: string = 'ModelError';
}
