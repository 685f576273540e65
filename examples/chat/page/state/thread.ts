import { type Signal, signal } from '@preact/signals';
import { ApiError } from 'runspan/clients';
import { announce } from '../parts/announcer.tsx';
import {
  CommandError,
  cancelRun,
  checkpointOf,
  fieldsOf,
  isRefusal,
  NO_RESPONSE,
  newId,
  problemOf,
  respondTo,
  startRun,
  stateOf,
  type ThreadState,
} from './client.ts';
import {
  announcementOf,
  atState,
  type Conversation,
  EMPTY,
  type InputRequest,
  isBusy,
  turnsOf,
  withEvents,
  withQuestion,
  withState,
} from './conversation.ts';
import { eventsOf, type ThreadEvent } from './event-stream.ts';
import { stateBefore } from './history.ts';
import { textIn } from './message.ts';
import { MessageAssembler } from './message-assembler.ts';

export type Connection = 'closed' | 'connecting' | 'open' | 'reconnecting';

/** Events that arrive within this time are rendered together. */
const SHOW_MS = 16;
/**
 * Time between the end of a cancelled run and a check whether the thread still exists. A thread that is deleted during
 * a run still exists for a moment after the run.
 */
const DELETION_MS = 1_000;
const FIRST_RECONNECT_MS = 1_000;
const LONGEST_RECONNECT_MS = 5_000;
/** Statuses with which the server or a proxy asks for a later attempt. */
const LATER = [408, 429];

/** The checkpoint from which a run starts. */
interface Start {
  /** Id of the checkpoint. @default the newest checkpoint */
  readonly checkpoint_id?: string | undefined;
  /** Whether the checkpoint's state already contains the question. */
  readonly isAsked?: boolean;
}

/** A chat thread that the page shows. Follows the thread's events and sends the user's commands. */
export class Thread {
  readonly id: string;
  readonly conversation: Signal<Conversation> = signal(EMPTY);
  readonly connection: Signal<Connection> = signal('closed');
  /** The earlier state that the user has opened, if any. The next message starts a branch there. */
  readonly viewed: Signal<ThreadState | undefined> = signal(undefined);
  /** Why the last action failed. */
  readonly problem: Signal<string | undefined> = signal(undefined);
  /** Why the thread does not exist. */
  readonly absence: Signal<'deleted' | 'invalid' | undefined> = signal(undefined);
  /** Whether the thread does not exist on the server yet. */
  isNew: boolean;
  readonly #onChange: () => void;
  #connecting: AbortController | undefined;
  #lastSeq: number | undefined;
  #isLive = false;
  readonly #assembler = new MessageAssembler();
  #pending: ThreadEvent[] = [];
  #showTimer: ReturnType<typeof setTimeout> | undefined;
  #loading: Promise<void> | undefined;
  #isStale = false;
  /** The command that was sent last. */
  #command: Promise<boolean> | undefined;

  /** Creates a thread. `onChange` is called when the list of threads may have changed. */
  constructor(id: string, isNew: boolean, onChange: () => void) {
    this.id = id;
    this.isNew = isNew;
    this.#onChange = onChange;
  }

  /** The conversation to show: the newest one, or the one at the earlier state that the user has opened. */
  get shown(): Conversation {
    const viewed = this.viewed.value;
    return viewed === undefined ? this.conversation.value : atState(this.conversation.value, viewed);
  }

  /**
   * Starts to follow the thread. A hidden page does not follow it, because browsers allow only six connections to a
   * server.
   */
  open(): void {
    if (!this.isNew) this.#connect();
  }

  close(): void {
    this.#connecting?.abort();
    this.#connecting = undefined;
    clearTimeout(this.#showTimer);
    this.#showTimer = undefined;
    this.connection.value = 'closed';
  }

  /** Loads the newest state. Called for example when the thread may have been deleted on another page. */
  async refresh(): Promise<void> {
    if (!this.isNew) await this.#load();
  }

  /** Sends a message. Resolves to false if the server does not accept it. */
  send(text: string): Promise<boolean> {
    const checkpoint_id = checkpointOf(this.viewed.value);
    return this.#ask(newId(), text, () => ({ checkpoint_id }));
  }

  /** Replaces a message. The earlier version remains in the history. */
  edit(messageId: string, text: string): Promise<boolean> {
    return this.#askAgain(messageId, text, true);
  }

  /** Requests another answer to the last message. */
  async retry(): Promise<boolean> {
    const question = turnsOf(this.shown).at(-1)?.question;
    return question === undefined ? false : this.#askAgain(question.id, textIn(question), false);
  }

  /** Answers the agent's request. */
  respond({ id }: InputRequest, response: unknown): Promise<boolean> {
    return this.#send(() => respondTo(this.id, id, response));
  }

  /** Removes the problem that the server does not respond. */
  responds(): void {
    if (this.problem.value === NO_RESPONSE) this.problem.value = undefined;
  }

  async stop(): Promise<void> {
    // The command's response contains the run's id, so it must arrive first.
    await this.#command;
    const { run } = this.conversation.value;
    if (run.id === undefined || !isBusy(this.conversation.value)) return;
    try {
      await cancelRun(this.id, run.id);
    } catch (error) {
      this.problem.value = problemOf(error);
    }
  }

  /** Shows an earlier state, or the newest state if `state` is undefined. */
  view(state: ThreadState | undefined): void {
    this.viewed.value = state;
    this.problem.value = undefined;
  }

  #connect(): void {
    if (this.#connecting !== undefined || document.hidden) return;
    this.#connecting = new AbortController();
    void this.#follow(this.#connecting.signal);
  }

  #askAgain(messageId: string, text: string, isChanged: boolean): Promise<boolean> {
    const viewed = this.viewed.value;
    const head = viewed === undefined ? this.conversation.value.checkpointId : checkpointOf(viewed);
    return this.#ask(messageId, text, async () => {
      const isAsked = ({ values }: ThreadState): boolean => values.messages?.at(-1)?.id === messageId;
      const state = head === undefined ? undefined : await stateBefore(this.id, head, isAsked);
      // If no state contains the question, its run failed early. The question is then sent again.
      return state === undefined ? {} : { checkpoint_id: checkpointOf(state), isAsked: !isChanged };
    });
  }

  async #ask(id: string, text: string, findStart: () => Start | Promise<Start>): Promise<boolean> {
    const [before, viewed] = [this.conversation.value, this.viewed.value];
    if (isBusy(before)) return false;
    this.conversation.value = withQuestion(this.shown, id, text);
    this.viewed.value = undefined;
    const isSent = await this.#send(async () => {
      const { checkpoint_id, isAsked } = await findStart();
      return startRun(this.id, {
        // A thread that was deleted on another page must not be created again.
        ifNotExists: before.checkpointId === undefined ? 'create' : 'reject',
        input: isAsked ? null : { messages: [{ type: 'human', id, content: text }] },
        ...(checkpoint_id !== undefined && { checkpoint_id }),
      });
    });
    if (!isSent) {
      this.conversation.value = { ...before, messages: this.conversation.value.messages };
      this.viewed.value = viewed;
      await this.refresh();
    }
    return isSent;
  }

  #send(command: () => Promise<string>): Promise<boolean> {
    this.#command = this.#sendNow(command);
    return this.#command;
  }

  async #sendNow(command: () => Promise<string>): Promise<boolean> {
    this.problem.value = undefined;
    try {
      const id = await command();
      const { run } = this.conversation.value;
      // Events of the run may have arrived before this response.
      if (run.id !== id && !(run.status === 'running' && run.id !== undefined))
        this.conversation.value = { ...this.conversation.value, run: { ...run, status: 'starting', id } };
      this.isNew = false;
      this.open();
      this.#onChange();
      return true;
    } catch (error) {
      const isAnswered = error instanceof CommandError && error.reason === 'no_such_interrupt';
      this.problem.value = isAnswered ? 'This request was answered elsewhere.' : problemOf(error);
      if (isRefusal(error)) await this.refresh();
      // The page reconnects, and the problem disappears when the server responds again.
      else this.#connect();
      return false;
    }
  }

  /** Reads the thread's events until the signal aborts. Reconnects when the connection ends. */
  async #follow(signal: AbortSignal): Promise<void> {
    if (this.connection.value !== 'reconnecting') this.connection.value = 'connecting';
    for (let failures = 0; !signal.aborted; failures++) {
      this.#isLive = false;
      try {
        for await (const event of eventsOf(this.id, this.#lastSeq, signal)) {
          failures = 0;
          if (event === 'live') void this.#goLive(signal);
          else this.#add(event);
        }
      } catch (error) {
        if (error instanceof ApiError && error.status < 500 && !LATER.includes(error.status) && !signal.aborted) {
          if (error.status === 422) this.absence.value = 'invalid';
          else this.problem.value = problemOf(error);
          return this.close();
        }
      }
      if (signal.aborted) return;
      this.connection.value = 'reconnecting';
      const delayMs = Math.min(FIRST_RECONNECT_MS * 2 ** failures, LONGEST_RECONNECT_MS);
      await new Promise((resolve) => setTimeout(resolve, delayMs + Math.random() * FIRST_RECONNECT_MS));
    }
  }

  /** Shows the stored events together with the newest state. */
  async #goLive(signal: AbortSignal): Promise<void> {
    await this.#load();
    if (signal.aborted) return;
    const wasLost = this.connection.value === 'reconnecting';
    this.connection.value = 'open';
    this.responds();
    this.#isLive = true;
    this.#show();
    if (wasLost) this.#onChange();
  }

  #add(event: ThreadEvent): void {
    this.#lastSeq = event.seq ?? this.#lastSeq;
    this.#pending.push(event);
    if (this.#isLive) this.#showTimer ??= setTimeout(() => this.#show(), SHOW_MS);
  }

  #show(): void {
    this.#showTimer = undefined;
    const events = this.#pending;
    this.#pending = [];
    const before = this.conversation.value;
    const after = withEvents(before, events, this.#assembler);
    this.conversation.value = after;
    if (events.some(isNewState)) void this.#load();
    if (before.run.status === after.run.status && before.requests.length === after.requests.length) return;
    // Screen readers announce a run only if it was in progress while the page was open.
    if (before.run.status !== 'idle' || isBusy(after)) announce(announcementOf(after));
    if (isBusy(before) !== isBusy(after)) this.#onChange();
    if (isBusy(before) && after.run.error === 'cancelled') setTimeout(() => void this.refresh(), DELETION_MS);
  }

  /**
   * Loads the newest state. A call during a load causes one further load. Never rejects, because later events trigger
   * another load anyway.
   */
  #load(): Promise<void> {
    this.#isStale = true;
    this.#loading ??= this.#loadAll()
      .catch(() => {})
      .finally(() => {
        this.#loading = undefined;
      });
    return this.#loading;
  }

  async #loadAll(): Promise<void> {
    while (this.#isStale) {
      this.#isStale = false;
      const state = await stateOf(this.id);
      const known = this.conversation.value;
      if (state !== undefined) {
        this.conversation.value = withState(known, state);
        this.absence.value = undefined;
      } else if (known.checkpointId !== undefined) {
        this.conversation.value = { ...known, run: { status: 'idle' }, requests: [], next: [] };
        if (this.absence.value === undefined) this.#onChange();
        this.absence.value = 'deleted';
      }
    }
  }
}

/** Whether the thread's state must be loaded after an event, because it has changed or events were missed. */
function isNewState({ method, params }: ThreadEvent): boolean {
  if ((params.namespace ?? []).length > 0) return false;
  const { event, name } = fieldsOf(params.data);
  return method === 'checkpoints' || (method === 'lifecycle' && event !== 'running') || name === 'missed_events';
}
