import type { CallbackManagerForLLMRun } from '@langchain/core/callbacks/manager';
import { AIMessageChunk, type BaseMessage, ToolMessage } from '@langchain/core/messages';
import { ChatGenerationChunk } from '@langchain/core/outputs';
import { LocalModel } from '../../server/agent/local-model.ts';
import { ChangedModel } from './changed-model.ts';
import { Deferred } from './deferred.ts';

/** Where a model waits in the middle of its answers, until it is let go. */
export class Gate {
  readonly #open = new Deferred();
  readonly #reached = new Deferred();

  /** When a model waits. */
  get reached(): Promise<void> {
    return this.#reached.promise;
  }

  open(): void {
    this.#open.resolve();
  }

  async pass(signal: AbortSignal | undefined): Promise<void> {
    this.#reached.resolve();
    const stopped = new Deferred<never>();
    signal?.addEventListener('abort', () => stopped.reject(new DOMException('stopped', 'AbortError')));
    await Promise.race([this.#open.promise, stopped.promise]);
  }
}

/** The local model, which waits at a gate after the first word of each answer. */
export class HeldModel extends ChangedModel<Gate> {
  override async *_streamResponseChunks(
    messages: BaseMessage[],
    options: this['ParsedCallOptions'],
    manager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    let words = 0;
    for await (const chunk of super._streamResponseChunks(messages, options, manager)) {
      yield chunk;
      words += 1;
      if (words === 1) await this.change.pass(options.signal);
    }
  }
}

/** A model that has no answer. */
export class FailingModel extends LocalModel {
  override bindTools(): this {
    return this;
  }

  // biome-ignore lint/correctness/useYield: it fails before it has anything
  override async *_streamResponseChunks(): AsyncGenerator<ChatGenerationChunk> {
    throw new Error('The model is on strike.');
  }
}

/** A model that wants two notes saved at once, and then says what has become of them. */
export class TwoNotesModel extends LocalModel {
  override bindTools(): this {
    return this;
  }

  override async *_streamResponseChunks(messages: BaseMessage[]): AsyncGenerator<ChatGenerationChunk> {
    const results = messages.filter((message) => ToolMessage.isInstance(message));
    const call = (index: number, text: string) => ({
      index,
      id: `note-${index}`,
      name: 'save_note',
      args: JSON.stringify({ text }),
      type: 'tool_call_chunk' as const,
    });
    const message =
      results.length === 0
        ? new AIMessageChunk({ content: '', tool_call_chunks: [call(0, 'one'), call(1, 'two')] })
        : new AIMessageChunk(results.map(({ text }) => text).join(' '));
    yield new ChatGenerationChunk({ text: message.text, message });
  }
}
