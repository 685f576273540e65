import type { CallbackManagerForLLMRun } from '@langchain/core/callbacks/manager';
import { AIMessageChunk, type BaseMessage } from '@langchain/core/messages';
import { ChatGenerationChunk } from '@langchain/core/outputs';
import { ChangedModel } from './changed-model.ts';
import { Gate } from './held-model.ts';

export interface ScriptChanges {
  readonly hold?: string;
  readonly holdPieces?: number;
  readonly fail?: number;
  readonly say?: string;
  readonly pieceChars?: number;
}

/** What a model does with its next answers. */
export class Script {
  /** Where it waits in an answer, after so many pieces of it. */
  gate: Gate | undefined;
  gatePieces = 2;
  /** Answers of the supervisor that are held; others are not where it is `researcher`, and so on. */
  held: string | undefined;
  /** Answers that fail before they begin. */
  failures = 0;
  /** What the supervisor says, whatever it is asked. */
  say: string | undefined;
  /** In pieces of how many characters. */
  pieceChars = 50_000;

  set({ hold, holdPieces = 2, fail, say, pieceChars }: ScriptChanges): void {
    if (hold !== undefined) {
      this.gate = new Gate();
      this.held = hold;
      this.gatePieces = holdPieces;
    }
    this.failures = fail ?? this.failures;
    if (say !== undefined) this.say = say === '' ? undefined : say;
    this.pieceChars = pieceChars ?? this.pieceChars;
  }

  /** Lets the answers go on that wait, and those that come. */
  release(): void {
    this.gate?.open();
    this.gate = undefined;
  }
}

/** The local model, as a test has it answer. */
export class ScriptedModel extends ChangedModel<Script> {
  readonly #agent: string;

  constructor(script: Script, tools: readonly string[] = []) {
    super(script, tools);
    this.#agent = tools.includes('task') ? 'supervisor' : tools.includes('search_docs') ? 'researcher' : 'writer';
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    options: this['ParsedCallOptions'],
    manager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    const { say, pieceChars } = this.change;
    if (this.change.failures > 0) {
      this.change.failures -= 1;
      throw new Error('The model is on strike.');
    }
    const said = say !== undefined && this.#agent === 'supervisor';
    let pieces = 0;
    for await (const chunk of said
      ? saying(say, pieceChars)
      : super._streamResponseChunks(messages, options, manager)) {
      yield chunk;
      if (said) await manager?.handleLLMNewToken(chunk.text, undefined, undefined, undefined, undefined, { chunk });
      pieces += 1;
      const { gate, gatePieces, held } = this.change;
      if (pieces === gatePieces && held === this.#agent) await gate?.pass(options.signal);
    }
  }
}

async function* saying(text: string, pieceChars: number): AsyncGenerator<ChatGenerationChunk> {
  for (let start = 0; start < text.length; start += pieceChars) {
    const content = text.slice(start, start + pieceChars);
    yield new ChatGenerationChunk({ text: content, message: new AIMessageChunk({ content }) });
  }
}
