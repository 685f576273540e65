import { changedBody, type LoggedState, laidTogether, markedOf, wholeBody } from '../protocol/logged-state.ts';
import { stateTail } from '../protocol/state-tail.ts';
import type { SessionStore, StoredEvent } from '../storage/session-store.ts';

/** Of the messages of states, as many characters as are sent of what has been: each state has all of them, and only the last one is news. */
const STATES_CHARS_MAX = 64 * 1024 * 1024;

/** Makes of the events of a log, in its order, what a reader is sent. */
export interface BodyReader {
  /** Undefined where the messages of a state are too many, or no longer kept. */
  bodyOf(event: StoredEvent): Promise<string | undefined>;
}

/** Gives each state with all of its messages. It has to see every `values` of the root. */
export class StateReader implements BodyReader {
  readonly #sessions: SessionStore;
  readonly #threadId: string;
  #last: LoggedState | undefined;
  /** Nothing is found before the next state that has all of its messages. */
  #isLost = false;
  /** Of the states that have been. */
  #total: number | undefined;

  constructor(sessions: SessionStore, threadId: string) {
    this.#sessions = sessions;
    this.#threadId = threadId;
  }

  async bodyOf(event: StoredEvent): Promise<string | undefined> {
    const marked = markedOf(event);
    if (marked === undefined) return event.body;
    let messages = laidTogether(marked, this.#last);
    if (messages === undefined && !this.#isLost) {
      this.#last = await baseOf(this.#sessions, this.#threadId, event);
      messages = laidTogether(marked, this.#last);
    }
    this.#isLost = messages === undefined;
    if (messages === undefined) return undefined;
    const { id, total } = marked.state;
    if (id !== undefined) this.#last = { id, messages };
    this.#total ??= (await stateTail(this.#sessions, this.#threadId))?.total ?? 0;
    return this.#total - total >= STATES_CHARS_MAX ? undefined : wholeBody(marked, messages);
  }
}

/** Gives of each state but the first what differs from the one before it. */
export class ChangeReader implements BodyReader {
  readonly #sessions: SessionStore;
  readonly #threadId: string;
  /** The state that was given last. */
  #shown: string | undefined;
  /** Nothing is found before the next state that has all of its messages. */
  #isLost = false;

  constructor(sessions: SessionStore, threadId: string) {
    this.#sessions = sessions;
    this.#threadId = threadId;
  }

  async bodyOf(event: StoredEvent): Promise<string | undefined> {
    const marked = markedOf(event);
    if (marked === undefined) return event.body;
    const { id, base } = marked.state;
    if (base !== undefined && base === this.#shown) {
      this.#shown = id;
      return changedBody(marked);
    }
    const messages =
      laidTogether(marked) ??
      (this.#isLost ? undefined : laidTogether(marked, await baseOf(this.#sessions, this.#threadId, event)));
    this.#isLost = messages === undefined;
    if (messages === undefined) return undefined;
    this.#shown = id;
    return wholeBody(marked, messages);
  }
}

/** The state before an event. */
async function baseOf(
  sessions: SessionStore,
  threadId: string,
  { seq }: StoredEvent,
): Promise<LoggedState | undefined> {
  return (await stateTail(sessions, threadId, seq))?.state;
}
