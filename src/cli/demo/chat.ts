/** A turn of a conversation. */
export interface ChatTurn {
  /** Id of the run that the chat has reported to the client. */
  readonly runId: string;
  /** Aborted when the run is stopped. The run ends when the answer, or its next part, has settled. */
  readonly signal: AbortSignal;
}

export interface ScriptedChatOptions {
  /**
   * Called for each turn. Returns the answer as text or in parts. If it or a part of it throws, the run fails with the
   * error's message.
   */
  answer(
    question: string,
    threadId: string,
    turn: ChatTurn,
  ): string | AsyncIterable<string> | Promise<string | AsyncIterable<string>>;
  /** Whether a run joins the trace that the headers of its request name. @default false */
  readonly joinTraces?: boolean;
  /** Called with a line for each error that does not belong to a request. @default writes the line to stderr */
  log?(line: string): void;
}

/** The routes of the chat application in `examples/chat`, in memory and without a model. */
export interface ScriptedChat {
  /** Answers a request for a path below `/api`. The host name in its URL must be one of the machine's own. */
  fetch(request: Request): Promise<Response>;
  /** Ends the runs and the open streams. */
  close(): Promise<void>;
}

/** Creates a chat. Its code is an example, and is in the built package only. */
export async function createScriptedChat(options: ScriptedChatOptions): Promise<ScriptedChat> {
  const { href } = new URL('../../../dist/chunks/', import.meta.url);
  const { createScriptedChat: create } = await import(/* @vite-ignore */ `${href}scripted-chat.js`);
  return create(options);
}
