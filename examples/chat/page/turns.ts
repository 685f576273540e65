import type { Conversation, RunState } from './conversation.ts';
import { type Message, textIn } from './message.ts';

/** What was said, and what the agent made of it. */
export interface Turn {
  /** Missing where a thread begins without one. */
  readonly question: Message | undefined;
  readonly answer: readonly Message[];
  /** The run that the end of the answer is of, or that was to make one. */
  readonly runId: string | undefined;
  /** How that ended, where the page has heard of it. */
  readonly end: RunState | undefined;
}

type Draft = { -readonly [Key in keyof Turn]: Turn[Key] } & { readonly answer: Message[] };

/** The conversation as it is read. */
export function turnsOf(conversation: Conversation): Turn[] {
  const turns: Draft[] = [];
  const { runs, ends } = conversation;
  const isInState = new Set(conversation.order);
  for (const message of inOrder(conversation)) {
    if (message.role === 'human' || (turns.length === 0 && message.role === 'ai'))
      turns.push({
        question: message.role === 'human' ? message : undefined,
        answer: [],
        runId: undefined,
        end: undefined,
      });
    const turn = turns.at(-1);
    if (turn === undefined) continue;
    if (message.role === 'ai') turn.answer.push(message);
    // A run has ended with a state, whatever else it has said by then.
    if (isInState.has(message.id)) turn.end = ends.get(message.id);
    turn.runId = turn.end?.id ?? runs.get(message.id) ?? turn.runId;
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
