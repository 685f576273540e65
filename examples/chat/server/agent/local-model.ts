import { setTimeout as wait } from 'node:timers/promises';
import type { CallbackManagerForLLMRun } from '@langchain/core/callbacks/manager';
import { BaseChatModel, type BindToolsInput } from '@langchain/core/language_models/chat_models';
import { AIMessage, AIMessageChunk, type BaseMessage, HumanMessage, ToolMessage } from '@langchain/core/messages';
import { ChatGenerationChunk, type ChatResult } from '@langchain/core/outputs';
import { v7 as uuidv7 } from '@langchain/core/utils/uuid';
import { wordsOf } from './documents.ts';

export interface LocalModelOptions {
  /** Delay between two words of an answer. @default 0 */
  readonly wordDelayMs?: number;
}

/**
 * A model that answers by fixed rules, so that you can try the chat without an account. Like a real model, it streams
 * and calls tools.
 */
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
    const names = tools.map((tool) => (tool as { name: string }).name);
    return new LocalModel({ wordDelayMs: this.#wordDelayMs }, names);
  }

  override async _generate(messages: BaseMessage[]): Promise<ChatResult> {
    const { text, calls } = replyTo(messages, this.#tools);
    const message = new AIMessage({ content: text, tool_calls: calls.map((call) => ({ ...call, type: 'tool_call' })) });
    return { generations: [{ text, message }], llmOutput: { model_name: 'local-rules' } };
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    { signal }: this['ParsedCallOptions'],
    manager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    for (const message of chunksOf(replyTo(messages, this.#tools))) {
      if (this.#wordDelayMs > 0) await wait(this.#wordDelayMs, undefined, signal && { signal });
      const chunk = new ChatGenerationChunk({ text: message.text, message });
      yield chunk;
      await manager?.handleLLMNewToken(chunk.text, undefined, undefined, undefined, undefined, { chunk });
    }
  }
}

interface Reply {
  readonly text: string;
  readonly calls: readonly Call[];
}

interface Call {
  readonly id: string;
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

function* chunksOf({ text, calls }: Reply): Generator<AIMessageChunk> {
  for (const content of text.match(/\s*\S+\s*$|\s*\S+/g) ?? []) yield new AIMessageChunk({ content });
  // If the message has text, the text is block 0, so the tool calls start at block 1.
  const first = text === '' ? 0 : 1;
  for (const [place, { id, name, args }] of calls.entries()) {
    const call = { index: first + place, id, name, args: JSON.stringify(args), type: 'tool_call_chunk' as const };
    yield new AIMessageChunk({ content: '', tool_call_chunks: [call] });
  }
  const finish_reason = calls.length > 0 ? 'tool_calls' : 'stop';
  yield new AIMessageChunk({ content: '', response_metadata: { model_name: 'local-rules', finish_reason } });
}

const NOTE = /^(?:please )?(?:save|note|remember|write down)\b[: ]*(?:a note)?[: ]*(.+)/is;
const GREETING = /^(?:hi|hello|hey|help|thanks|thank you)\b|^what can (?:you|i) do\b/i;
const COMPARISON = /\b(?:compare|difference between) (.+?) (?:and|with|to) (.+?)[.?!]?$/i;
/** Maximum number of characters of a question to examine. The regular expressions are slow for long texts. */
const QUESTION_CHARS_MAX = 2_000;
const QUOTED_CHARS_MAX = 200;
/** Maximum number of characters of an answer, because answers stream word by word. */
const ANSWER_CHARS_MAX = 4_000;

/** Returns the next answer in a conversation. The names of the tools show which agent is asking. */
function replyTo(messages: readonly BaseMessage[], tools: readonly string[]): Reply {
  const asked = messages.findLastIndex((message) => HumanMessage.isInstance(message));
  const question = messages[asked]?.text.trim() ?? '';
  const results = messages.slice(asked + 1).filter((message) => ToolMessage.isInstance(message));
  if (tools.includes('task')) return supervise(question, results);
  if (tools.includes('search_docs')) return research(question, results.at(-1)?.text);
  return say(question);
}

function supervise(question: string, results: readonly ToolMessage[]): Reply {
  const last = results.at(-1);
  const note = NOTE.exec(question)?.[1];
  if (note !== undefined) return last === undefined ? call('', ['save_note', { text: note }]) : say(last.text);
  if (GREETING.test(question))
    return say('Hello. Ask about the documents, ask to compare two things, or say "save a note: …".');
  const topic = cut(question, QUESTION_CHARS_MAX);
  const [, ...compared] = COMPARISON.exec(topic) ?? [];
  if (last === undefined) {
    const topics = compared.length === 0 ? [topic] : compared;
    return call('Let me look that up.', ...topics.map((description) => task('researcher', description)));
  }
  // If there was only one researcher, `last` is its result. Otherwise `last` is the result of the writer.
  if (compared.length !== results.length) return say(last.text);
  return call('', task('writer', results.map(({ text }) => text).join('\n\n')));
}

function research(question: string, found: string | undefined): Reply {
  if (found === undefined) return call('', ['search_docs', { query: question }]);
  // The answer names its topic, because the supervisor may ask about several.
  const lead = question.endsWith('?') ? '' : `On "${cut(question, QUOTED_CHARS_MAX)}": `;
  const asked = new Set(wordsOf(question));
  for (const [, source = '', text = ''] of found.matchAll(/^\[\d+\] ([^\n]+)\n(.+)/gm)) {
    const beginning = /^(?:.*?[.!?](?:\s|$)){1,2}/.exec(text)?.[0].trim() ?? text;
    const words = new Set(wordsOf(`${source} ${beginning}`));
    const common = [...asked].filter((word) => words.has(word));
    if (common.length * 2 >= asked.size) return say(`${lead}${beginning} (${source})`);
  }
  return say(`${lead}The documents say nothing about this.`);
}

function task(subagent_type: string, description: string): [name: string, args: Call['args']] {
  return ['task', { subagent_type, description }];
}

function call(text: string, ...calls: readonly [name: string, args: Call['args']][]): Reply {
  return { text, calls: calls.map(([name, args]) => ({ id: `${name}-${uuidv7()}`, name, args })) };
}

function say(text: string): Reply {
  return { text: cut(text, ANSWER_CHARS_MAX), calls: [] };
}

/** Returns the beginning of a text. Never splits a surrogate pair. */
function cut(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text;
  return `${text.slice(0, charsMax - 1).replace(/[\uD800-\uDBFF]$/, '')}…`;
}
