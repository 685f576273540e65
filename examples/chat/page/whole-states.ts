import { type Fields, fieldsOf, type ProtocolEvent, type ThreadState } from './protocol.ts';

/** What is asked of the server, so that it does not send all messages with each state. One that does not know it sends them. */
export const AS_CHANGES = { values: 'changes' } as const;

/** Gives the states of a connection all of their messages, in their order. */
export class WholeStates {
  #last: readonly Fields[] = [];

  /** The event as it is without `kept`, the number of messages that stay of the state before. */
  whole(event: ProtocolEvent): ProtocolEvent {
    const { method, params } = event;
    const { messages, ...others } = fieldsOf(params.data);
    if (method !== 'values' || params.namespace.length > 0 || !Array.isArray(messages)) return event;
    this.#last = joined(this.#last, params.kept, messages);
    return { ...event, params: { ...params, data: { ...others, messages: this.#last } } };
  }
}

/** The same of a list, in which each state says how many messages stay of the one before. */
export function wholeStates(states: readonly ThreadState[]): ThreadState[] {
  let last: readonly Fields[] = [];
  return states.map((state) => {
    last = joined(last, state.kept, state.values.messages ?? []);
    return { ...state, values: { ...state.values, messages: last } };
  });
}

function joined(last: readonly Fields[], kept = 0, messages: readonly Fields[]): readonly Fields[] {
  return [...last.slice(0, kept), ...messages];
}
