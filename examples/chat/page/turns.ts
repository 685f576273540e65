import type { Conversation } from './conversation.ts';
import { type Message, textIn } from './message.ts';

/** What was said, and what the agent made of it. */
export interface Turn {
  /** Missing where a thread begins without one. */
  readonly question: Message | undefined;
  readonly answer: readonly Message[];
  /** The run that the end of the answer is of. */
  readonly runId: string | undefined;
}

/** The conversation as it is read. */
export function turnsOf(conversation: Conversation): Turn[] {
  const turns: { question: Message | undefined; answer: Message[]; runId: string | undefined }[] = [];
  const { runs } = conversation;
  for (const message of inOrder(conversation)) {
    if (message.role === 'human') turns.push({ question: message, answer: [], runId: undefined });
    if (message.role !== 'ai') continue;
    if (turns.length === 0) turns.push({ question: undefined, answer: [], runId: undefined });
    const turn = turns.at(-1);
    turn?.answer.push(message);
    if (turn !== undefined) turn.runId = runs.get(message.id) ?? turn.runId;
  }
  return turns;
}

/** What the agent has said last. */
export function lastAnswerOf(conversation: Conversation): string {
  const last = turnsOf(conversation).at(-1)?.answer.at(-1);
  return last === undefined ? '' : textIn(last);
}

function inOrder({ messages, order, streamed, cut, reading }: Conversation): Message[] {
  const ids: string[] = [];
  for (const [place, id] of order.entries()) {
    ids.push(id);
    const following = messages.get(order[place + 1] ?? '');
    // An answer that follows was made in the place of the one that was cut.
    if (following === undefined || following.role === 'human') ids.push(...(cut.get(id) ?? []));
  }
  const isCaughtUp = reading.checkpoint >= reading.base;
  return [...ids, ...(isCaughtUp ? streamed : [])].flatMap((id) => messages.get(id) ?? []);
}
