import type { CallbackManagerForLLMRun } from '@langchain/core/callbacks/manager';
import type { BindToolsInput } from '@langchain/core/language_models/chat_models';
import { AIMessageChunk, type BaseMessage } from '@langchain/core/messages';
import { ChatGenerationChunk } from '@langchain/core/outputs';
import { LocalModel } from '../../server/agent/local-model.ts';

export interface ScriptChanges {
  /** The agent whose answers wait for `release`. */
  readonly hold?: string;
  /** How many chunks it sends before. */
  readonly holdPieces?: number;
  /** How many answers fail. */
  readonly fail?: number;
  /** The answer of the supervisor to everything. Empty for the rules. */
  readonly say?: string;
  readonly pieceChars?: number;
}

/** How a model answers from now on. */
export class Script {
  held: string | undefined;
  holdPieces = 2;
  failures = 0;
  say = '';
  pieceChars = 50_000;
  #reach: () => void = () => {};
  #open: () => void = () => {};
  /** Resolves when an answer waits. */
  reached: Promise<void> = Promise.resolve();
  released: Promise<void> = Promise.resolve();

  set({ hold, holdPieces, fail, say, pieceChars }: ScriptChanges): this {
    if (hold !== undefined) {
      this.held = hold;
      this.reached = new Promise((resolve) => {
        this.#reach = resolve;
      });
      this.released = new Promise((resolve) => {
        this.#open = resolve;
      });
    }
    this.holdPieces = holdPieces ?? this.holdPieces;
    this.failures = fail ?? this.failures;
    this.say = say ?? this.say;
    this.pieceChars = pieceChars ?? this.pieceChars;
    return this;
  }

  release(): void {
    this.held = undefined;
    this.#open();
  }

  async wait(signal: AbortSignal | undefined): Promise<void> {
    this.#reach();
    const stopped = new Promise<never>((_, reject) => {
      signal?.addEventListener('abort', () => reject(new DOMException('stopped', 'AbortError')));
    });
    await Promise.race([this.released, stopped]);
  }
}

/** The local model with a script. */
export class ScriptedModel extends LocalModel {
  readonly script: Script;
  readonly #agent: string;

  constructor(script: Script = new Script(), tools: readonly string[] = []) {
    super({}, tools);
    this.script = script;
    this.#agent = tools.includes('task') ? 'supervisor' : tools.includes('search_docs') ? 'researcher' : 'writer';
  }

  override bindTools(tools: BindToolsInput[]): ScriptedModel {
    return new ScriptedModel(
      this.script,
      tools.map((tool) => (tool as { name: string }).name),
    );
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    options: this['ParsedCallOptions'],
    manager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    const { script } = this;
    if (script.failures > 0) {
      script.failures -= 1;
      throw new Error('The model is on strike.');
    }
    const isFixed = script.say !== '' && this.#agent === 'supervisor';
    const chunks = isFixed
      ? chunksOf(script.say, script.pieceChars)
      : super._streamResponseChunks(messages, options, manager);
    let pieces = 0;
    for await (const chunk of chunks) {
      yield chunk;
      pieces += 1;
      if (pieces === script.holdPieces && script.held === this.#agent) await script.wait(options.signal);
    }
  }
}

async function* chunksOf(text: string, chars: number): AsyncGenerator<ChatGenerationChunk> {
  for (let start = 0; start < text.length; start += chars) {
    const content = text.slice(start, start + chars);
    yield new ChatGenerationChunk({ text: content, message: new AIMessageChunk({ content }) });
  }
}
