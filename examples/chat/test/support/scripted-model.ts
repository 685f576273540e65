import { EventEmitter, once } from 'node:events';
import type { CallbackManagerForLLMRun } from '@langchain/core/callbacks/manager';
import type { BindToolsInput } from '@langchain/core/language_models/chat_models';
import { AIMessageChunk, type BaseMessage } from '@langchain/core/messages';
import { ChatGenerationChunk } from '@langchain/core/outputs';
import { LocalModel } from '../../server/agent/local-model.ts';

export interface ScriptChanges {
  /** Name of the agent whose answers wait until `release` is called. */
  readonly hold?: string;
  /** Number of chunks that the agent sends before it waits. */
  readonly holdPieces?: number;
  /** Number of answers that fail. */
  readonly fail?: number;
  /** The supervisor's answer to every message. If this text is empty, the rules of the local model answer. */
  readonly say?: string;
  readonly pieceChars?: number;
}

/** Controls how a scripted model answers from now on. */
export class Script {
  rules: Required<ScriptChanges> = { hold: '', holdPieces: 2, fail: 0, say: '', pieceChars: 50_000 };
  /** Resolves when an answer is on hold. */
  reached: Promise<unknown> = Promise.resolve();
  readonly #events = new EventEmitter();

  set(changes: ScriptChanges): this {
    this.rules = { ...this.rules, ...changes };
    if (changes.hold !== undefined) this.reached = once(this.#events, 'reached');
    return this;
  }

  release(): void {
    this.rules = { ...this.rules, hold: '' };
    this.#events.emit('released');
  }

  async wait(signal: AbortSignal | undefined): Promise<void> {
    this.#events.emit('reached');
    await once(this.#events, 'released', signal && { signal });
  }

  /** Throws if the script lets this answer fail. */
  check(): void {
    if (this.rules.fail === 0) return;
    this.rules = { ...this.rules, fail: this.rules.fail - 1 };
    throw new Error('The model is on strike.');
  }
}

/** The local model, controlled by a script. */
export class ScriptedModel extends LocalModel {
  readonly script: Script;
  readonly #agent: string;

  constructor(script: Script = new Script(), tools: readonly string[] = []) {
    super({}, tools);
    this.script = script;
    this.#agent = tools.includes('task') ? 'supervisor' : tools.includes('search_docs') ? 'researcher' : 'writer';
  }

  override bindTools(tools: BindToolsInput[]): ScriptedModel {
    const names = tools.map((tool) => (tool as { name: string }).name);
    return new ScriptedModel(this.script, names);
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    options: this['ParsedCallOptions'],
    manager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    this.script.check();
    const { say, pieceChars } = this.script.rules;
    const isFixed = say !== '' && this.#agent === 'supervisor';
    const chunks = isFixed ? chunksOf(say, pieceChars) : super._streamResponseChunks(messages, options, manager);
    let pieces = 0;
    for await (const chunk of chunks) {
      yield chunk;
      pieces += 1;
      const { hold, holdPieces } = this.script.rules;
      if (pieces === holdPieces && hold === this.#agent) await this.script.wait(options.signal);
    }
  }
}

async function* chunksOf(text: string, chars: number): AsyncGenerator<ChatGenerationChunk> {
  for (let start = 0; start < text.length; start += chars) {
    const content = text.slice(start, start + chars);
    yield new ChatGenerationChunk({ text: content, message: new AIMessageChunk({ content }) });
  }
}
