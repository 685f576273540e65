import type { Fields } from './fields.ts';
import { bodyText, dataText, type LoggedState, messagesIn, type StateTail, sameAtStart } from './logged-state.ts';
import { plainJson } from './plain-json.ts';

/** Events behind which a state has all of its messages again, however large it is. */
export const STATE_EVENTS_MAX = 2_500;

/** Makes the bodies of the events of one run, in their order; see `LoggedState`. */
export class StateWriter {
  readonly #runId: string;
  #states = 0;
  #last: LoggedState | undefined;
  #total = 0;
  /** What there is behind the last state with all of its messages. */
  #events = 0;
  #chars = 0;

  constructor(runId: string) {
    this.#runId = runId;
  }

  /** Goes on where a log has ended. */
  goOn({ state, total, events, chars }: StateTail): void {
    this.#last = state;
    this.#total = total;
    this.#events = events;
    this.#chars = chars;
  }

  bodyOf(method: string, params: Fields & { readonly namespace: readonly string[] }, data: unknown): string {
    const list = params.namespace.length === 0 ? messagesIn(method, data) : undefined;
    if (list !== undefined) return this.#stateOf(method, params, data, list);
    return this.#counted(bodyText({ method, params }, plainJson(data)));
  }

  #stateOf(method: string, params: Fields, data: unknown, list: readonly unknown[]): string {
    const messages = list.map(plainJson);
    const chars = messages.reduce((sum, { length }) => sum + length, 0);
    this.#total += chars;
    const base = this.#last;
    const kept = sameAtStart(base?.messages ?? [], messages);
    const basis = { total: this.#total, ...(base === undefined ? {} : { base: base.id, kept }) };
    const changed = messages.slice(kept);
    if (method !== 'values')
      return this.#counted(bodyText({ state: basis, method, params }, dataText(method, data, changed)));
    this.#states += 1;
    const id = `${this.#runId}/${this.#states}`;
    this.#last = { id, messages };
    // All of them are no more than what has come since they were all there: the log is at most twice as long as it has to be.
    const isWhole = base === undefined || this.#events >= STATE_EVENTS_MAX || this.#chars >= chars;
    const state = { id, ...basis, ...(isWhole ? { isWhole } : {}) };
    const body = bodyText({ state, method, params }, dataText(method, data, isWhole ? messages : changed));
    if (!isWhole) return this.#counted(body);
    [this.#events, this.#chars] = [0, 0];
    return body;
  }

  #counted(body: string): string {
    this.#events += 1;
    this.#chars += body.length;
    return body;
  }
}
