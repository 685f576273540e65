import { type Signal, signal } from '@preact/signals';
import { announcementOf } from './announcement.ts';
import { announce } from './announcer.tsx';
import { ApiError, api, NO_ANSWER, problemOf } from './api.ts';
import {
  atState,
  type Conversation,
  EMPTY,
  type InputRequest,
  isBusy,
  withoutQuestion,
  withQuestion,
  withRun,
  withState,
} from './conversation.ts';
import { withEvents } from './conversation-events.ts';
import { stateBehind } from './history.ts';
import { textIn } from './message.ts';
import { checkpointOf, fieldsOf, type ProtocolEvent, type ThreadState } from './protocol.ts';
import { type Connection, ThreadStream } from './thread-stream.ts';
import { keepTrace } from './trace-link.ts';
import { turnsOf } from './turns.ts';
import { uuidv7 } from './uuid.ts';

/** Events are shown so many milliseconds after they have come, those of one while together. */
const SHOW_MS = 16;
/** A thread that is deleted while its run is under way is there for a moment after the end of that. */
const DELETED_MS = 1_000;

/** What is answered to requests of a form that the server does not take: of those that connect, only the id is a reader's. */
const MALFORMED = 422;

/** Where in the thread a run begins: at its end, unless a checkpoint is given. */
interface Place {
  readonly from?: string | undefined;
  /** Whether what is said is in that state already. */
  readonly isThere?: boolean;
}

/** One conversation with the agent, kept at what the server knows of it, and what a reader does to it. */
export class Thread {
  readonly id: string;
  /** What is the newest. */
  readonly conversation: Signal<Conversation> = signal(EMPTY);
  readonly connection: Signal<Connection> = signal('closed');
  /** The earlier state that is looked at, and that the next message goes on from. */
  readonly viewed: Signal<ThreadState | undefined> = signal(undefined);
  /** What the reader has asked for and did not get. */
  readonly problem: Signal<string | undefined> = signal(undefined);
  /**
   * Why the server has no such thread: it has known it and does not any more, as it was deleted elsewhere, or was in the memory of a server that
   * is gone; or its id can be of none.
   */
  readonly absence: Signal<'gone' | 'impossible' | undefined> = signal(undefined);
  readonly #stream: ThreadStream;
  readonly #onChange: () => void;
  #pending: ProtocolEvent[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #checkTimer: ReturnType<typeof setTimeout> | undefined;
  /** The last command, until it is answered and after. */
  #asked: Promise<boolean> | undefined;
  #isOpen = false;
  /** As long as it is, there is nothing to ask the server about. */
  #isNew: boolean;

  /**
   * @param isNew whether the server does not know it before its first message
   * @param onChange called when the list of threads may have changed
   */
  constructor(id: string, isNew: boolean, onChange: () => void) {
    this.id = id;
    this.#isNew = isNew;
    this.#onChange = onChange;
    this.#stream = new ThreadStream({
      threadId: id,
      beforeConnect: (signal) => this.#load(signal),
      onEvents: (events) => this.#take(events),
      onConnection: (connection) => this.#note(connection),
      onRefusal: (error) => {
        if (error.status === MALFORMED) this.absence.value = 'impossible';
        else this.problem.value = problemOf(error);
      },
    });
  }

  open(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    void this.#stream.run();
  }

  close(): void {
    this.#stream.close();
    clearTimeout(this.#timer);
    clearTimeout(this.#checkTimer);
  }

  get isNew(): boolean {
    return this.#isNew;
  }

  /** Looks whether the server still knows it. */
  async check(): Promise<void> {
    if (this.#isOpen) await this.#load().catch(() => undefined);
  }

  /** What is looked at: the newest, or the earlier state. */
  get shown(): Conversation {
    const viewed = this.viewed.value;
    return viewed === undefined ? this.conversation.value : atState(this.conversation.value, viewed);
  }

  /** Says something; false where the server did not take it. */
  send(text: string): Promise<boolean> {
    const viewed = this.viewed.value;
    return this.#ask(uuidv7(), text, () => ({ from: viewed === undefined ? undefined : checkpointOf(viewed) }));
  }

  /** Says something else in the place of what was said; what came of that stays in the history. */
  edit(messageId: string, text: string): Promise<boolean> {
    return this.#again(messageId, text, true);
  }

  /** Has the last message answered once more. */
  async retry(): Promise<boolean> {
    const question = turnsOf(this.shown).at(-1)?.question;
    return question === undefined ? false : this.#again(question.id, textIn(question), false);
  }

  /** Answers what the run waits for. */
  respond({ id, namespace }: InputRequest, response: object): Promise<boolean> {
    const params = { interrupt_id: id, namespace, response };
    return this.#start('input.respond', () => params);
  }

  async stop(): Promise<void> {
    // Its run has a name only when the server has answered.
    await this.#asked;
    const { run } = this.conversation.value;
    if (run.id === undefined || !isBusy(this.conversation.value)) return;
    try {
      await api.cancel(this.id, run.id);
    } catch (error) {
      this.problem.value = problemOf(error);
    }
  }

  /** Looks at an earlier state, or at the newest again. */
  view(state: ThreadState | undefined): void {
    this.viewed.value = state;
    this.problem.value = undefined;
  }

  #again(messageId: string, text: string, isChanged: boolean): Promise<boolean> {
    const viewed = this.viewed.value;
    const head = viewed === undefined ? this.conversation.value.checkpointId : checkpointOf(viewed);
    return this.#ask(messageId, text, async () => {
      const state =
        head === undefined
          ? undefined
          : await stateBehind(this.id, head, ({ values }) => values.messages?.at(-1)?.id === messageId);
      // A message that the agent never got is sent as it was.
      return state === undefined ? {} : { from: checkpointOf(state), isThere: !isChanged };
    });
  }

  async #ask(id: string, text: string, place: () => Place | Promise<Place>): Promise<boolean> {
    const [before, viewed] = [this.conversation.value, this.viewed.value];
    if (isBusy(before)) return false;
    // From here on it is busy, so that what is asked for twice is done once.
    const asked = withRun(withQuestion(this.shown, id, text), { status: 'starting' });
    this.conversation.value = asked;
    this.viewed.value = undefined;
    const isTaken = await this.#start('run.start', async () => {
      const { from, isThere = false } = await place();
      return {
        assistant_id: 'agent',
        // One that was deleted elsewhere is not begun anew without a word.
        ifNotExists: before.checkpointId === undefined ? 'create' : 'reject',
        input: isThere ? null : { messages: [{ type: 'human', id, content: text }] },
        config: { configurable: { thread_id: this.id, ...(from === undefined ? {} : { checkpoint_id: from }) } },
      };
    });
    if (!isTaken) {
      this.conversation.value = withoutQuestion(this.conversation.value, asked, before, id);
      this.viewed.value = viewed;
    }
    return isTaken;
  }

  #start(method: string, params: () => object | Promise<object>): Promise<boolean> {
    this.#asked = this.#command(method, params);
    return this.#asked;
  }

  async #command(method: string, params: () => object | Promise<object>): Promise<boolean> {
    this.problem.value = undefined;
    this.open();
    try {
      const { run_id, trace_id } = await api.command(this.id, method, await params());
      this.#isNew = false;
      if (run_id !== undefined) {
        if (trace_id !== undefined) keepTrace(run_id, trace_id);
        // Its events may have come before the answer.
        if (this.conversation.value.run.id !== run_id)
          this.conversation.value = withRun(this.conversation.value, { status: 'starting', id: run_id });
      }
      this.#onChange();
      return true;
    } catch (error) {
      this.problem.value = isDecided(error) ? 'This has been decided elsewhere already.' : problemOf(error);
      // The thread is not as the page knows it, or is not at all.
      if (error instanceof ApiError) await this.check();
      return false;
    }
  }

  async #load(signal?: AbortSignal): Promise<void> {
    if (this.#isNew) return;
    const wasKnown = this.conversation.value.checkpointId !== undefined;
    const state = await api.state(this.id, signal);
    const { run_id, trace_id } = state?.metadata ?? {};
    if (typeof run_id === 'string' && typeof trace_id === 'string') keepTrace(run_id, trace_id);
    const known = this.conversation.value;
    if (state !== undefined) {
      // Events may have told of a later one meanwhile; ids of checkpoints are in the order of time.
      if ((checkpointOf(state) ?? '') >= (known.checkpointId ?? '')) this.conversation.value = withState(known, state);
      this.absence.value = undefined;
    } else if (wasKnown) {
      // With it went the run that was under way, and what it asked.
      this.conversation.value = { ...withRun(known, { status: 'idle' }), requests: [], next: [] };
      this.problem.value = undefined;
      if (this.absence.value === undefined) this.#onChange();
      this.absence.value = 'gone';
    }
  }

  #note(connection: Connection): void {
    const before = this.connection.value;
    this.connection.value = connection;
    if (connection !== 'open' || before === 'open') return;
    if (this.problem.value === NO_ANSWER) this.problem.value = undefined;
    // What the list has missed, or could not be told.
    if (before === 'reconnecting') this.#onChange();
  }

  #take(events: readonly ProtocolEvent[]): void {
    this.#isNew = false;
    this.absence.value = undefined;
    this.#pending.push(...events);
    this.#timer ??= setTimeout(() => this.#show(), SHOW_MS);
    if (events.some(isGap)) void this.#load().catch(() => undefined);
  }

  #show(): void {
    this.#timer = undefined;
    const before = this.conversation.value;
    const after = withEvents(before, this.#pending);
    this.#pending = [];
    this.conversation.value = after;
    if (before.run.status === after.run.status && before.requests.length === after.requests.length) return;
    // What had ended before the page came is no news.
    if (before.run.status !== 'idle' || isBusy(after)) announce(announcementOf(after));
    if (isBusy(before) !== isBusy(after)) this.#onChange();
    if (isBusy(before) && after.run.error === 'cancelled') this.#checkSoon();
  }

  #checkSoon(): void {
    void this.check();
    clearTimeout(this.#checkTimer);
    this.#checkTimer = setTimeout(() => void this.check(), DELETED_MS);
  }
}

/** There is nothing to answer any more. */
function isDecided(error: unknown): boolean {
  return error instanceof ApiError && error.code === 'no_such_interrupt';
}

function isGap({ method, params }: ProtocolEvent): boolean {
  return method === 'custom' && fieldsOf(params.data).name === 'missed_events';
}
