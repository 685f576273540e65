import { setTimeout as wait } from 'node:timers/promises';
import type { CallbackManagerForLLMRun } from '@langchain/core/callbacks/manager';
import { BaseChatModel, type BindToolsInput } from '@langchain/core/language_models/chat_models';
import { AIMessage, AIMessageChunk, type BaseMessage } from '@langchain/core/messages';
import { ChatGenerationChunk, type ChatResult } from '@langchain/core/outputs';
import { type LocalReply, replyTo } from './local-rules.ts';

export interface LocalModelOptions {
  /** @default 0 */
  readonly wordDelayMs?: number;
}

/** Answers by fixed rules, so that the chat can be tried without an account. Streams and calls tools like a real model. */
export class LocalModel extends BaseChatModel {
  readonly #wordDelayMs: number;
  readonly #tools: readonly string[];

  constructor({ wordDelayMs = 0 }: LocalModelOptions = {}, tools: readonly string[] = []) {
    super({});
    this.#wordDelayMs = wordDelayMs;
    this.#tools = tools;
  }

  override _llmType(): string {
    return 'local-rules';
  }

  override bindTools(tools: BindToolsInput[]): LocalModel {
    return new LocalModel(
      { wordDelayMs: this.#wordDelayMs },
      tools.map((tool) => (tool as { name: string }).name),
    );
  }

  override async _generate(messages: BaseMessage[]): Promise<ChatResult> {
    const reply = replyTo(messages, this.#tools);
    const message = new AIMessage({
      content: reply.text,
      tool_calls: reply.calls.map((call) => ({ ...call, type: 'tool_call' })),
    });
    return { generations: [{ text: reply.text, message }], llmOutput: { model_name: 'local-rules' } };
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    options: this['ParsedCallOptions'],
    manager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    for (const chunk of chunksOf(replyTo(messages, this.#tools))) {
      if (this.#wordDelayMs > 0) await pause(this.#wordDelayMs, options.signal);
      yield chunk;
      await manager?.handleLLMNewToken(chunk.text, undefined, undefined, undefined, undefined, { chunk });
    }
  }
}

function* chunksOf({ text, calls }: LocalReply): Generator<ChatGenerationChunk> {
  for (const word of text.match(/\s*\S+\s*$|\s*\S+/g) ?? []) {
    yield new ChatGenerationChunk({ text: word, message: new AIMessageChunk({ content: word }) });
  }
  // Text is block 0 of the message, so calls start at 1.
  const first = text === '' ? 0 : 1;
  for (const [place, { id, name, args }] of calls.entries()) {
    const call = { index: first + place, id, name, args: JSON.stringify(args), type: 'tool_call_chunk' as const };
    yield new ChatGenerationChunk({ text: '', message: new AIMessageChunk({ content: '', tool_call_chunks: [call] }) });
  }
  const finish = { model_name: 'local-rules', finish_reason: calls.length > 0 ? 'tool_calls' : 'stop' };
  yield new ChatGenerationChunk({ text: '', message: new AIMessageChunk({ content: '', response_metadata: finish }) });
}

async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await wait(ms, undefined, signal === undefined ? {} : { signal });
}
