import { inferChannel, type ProtocolEvent } from '@langchain/langgraph/stream';
import type { NewEvent } from '../storage/session-store.ts';
import { type Fields, fieldsOf } from './fields.ts';
import type { StateTail } from './logged-state.ts';
import { StateWriter } from './state-writer.ts';

/** The name of what the server itself tells readers: one of the graph that is called so is called differently. */
export const MISSED_EVENTS = 'missed_events';

/** How a run, or a part of it, is doing. */
export type LifecycleStatus = 'running' | 'completed' | 'failed' | 'interrupted';

/**
 * Makes of the events of a graph those of the protocol. The graph's own are close to them; what differs is mended here:
 * interrupts become requests for input, what a subagent was started by is told, and the run as a whole is told of by whoever runs it, once its
 * last checkpoint is there.
 */
export class RunEvents {
  readonly #runId: string;
  readonly #graphName: string;
  readonly #bodies: StateWriter;
  /** Calls of `task` by the id of the task of the graph that does them, which is in its namespace. */
  readonly #subagents = new Map<string, { readonly callId: string; readonly name: string }>();
  /** What tools have failed with, by their namespaces: the graph goes on, and tells those as completed. */
  readonly #failures = new Map<string, unknown>();
  readonly #requested = new Set<string>();

  constructor(runId: string, graphName: string) {
    this.#runId = runId;
    this.#graphName = graphName;
    this.#bodies = new StateWriter(runId);
  }

  /** Goes on where the log of the thread has ended. */
  goOn(tail: StateTail): void {
    this.#bodies.goOn(tail);
  }

  /** Whether somebody has to answer before the run can go on. */
  get isInputRequested(): boolean {
    return this.#requested.size > 0;
  }

  of({ method, params }: ProtocolEvent): NewEvent[] {
    const { namespace, node, timestamp } = params;
    const data = fieldsOf(params.data);
    const make = (made: string, madeData: unknown): NewEvent =>
      this.#event(made, namespace, madeData, { timestamp, node });
    switch (method) {
      case 'lifecycle':
        return namespace.length === 0 ? [] : [make(method, { ...data, ...this.#partOf(namespace, data) })];
      case 'tasks':
        this.#note(data);
        return [make(method, params.data)];
      case 'tools':
        if (isInterrupt(data)) return [];
        if (data.event === 'tool-error') this.#failures.set(namespace.join('|'), data.message);
        return [make(method, { ...data, ...inputOf(data) })];
      case 'updates':
        return node === '__interrupt__' ? this.#requests(namespace, data.values) : [make(method, params.data)];
      case 'values': {
        const { __interrupt__, ...values } = data;
        if (__interrupt__ === undefined) return [make(method, params.data)];
        const requests = this.#requests(namespace, __interrupt__);
        return Object.keys(values).length === 0 ? requests : [make(method, values), ...requests];
      }
      case 'custom':
        return [make(method, data.name === MISSED_EVENTS ? { ...data, name: `graph.${MISSED_EVENTS}` } : params.data)];
      default:
        return [make(method, params.data)];
    }
  }

  /** Tells of the run as a whole. */
  lifecycle(status: LifecycleStatus, error?: string): NewEvent {
    const data = { event: status, graph_name: this.#graphName, ...(error === undefined ? {} : { error }) };
    return this.#event('lifecycle', [], data);
  }

  #event(method: string, namespace: readonly string[], data: unknown, more: Fields = {}): NewEvent {
    const params = { namespace, timestamp: Date.now(), run_id: this.#runId, ...more };
    const channel = inferChannel({ method, params: { ...params, namespace: [...namespace], data } }) ?? method;
    return { channel, namespace, body: this.#bodies.bodyOf(method, params, data) };
  }

  #note({ id, input }: Fields): void {
    const call = fieldsOf(fieldsOf(input).tool_call);
    if (typeof id !== 'string' || call.name !== 'task' || typeof call.id !== 'string') return;
    this.#subagents.set(id, { callId: call.id, name: String(fieldsOf(call.args).subagent_type ?? 'task') });
  }

  /** What the graph does not tell of how a part of it begins and ends. */
  #partOf(namespace: readonly string[], { event }: Fields): Fields {
    const place = namespace.join('|');
    const isFailed = event === 'completed' && this.#failures.has(place);
    const end = isFailed ? { event: 'failed', error: this.#failures.get(place) } : {};
    const subagent = this.#subagents.get(namespace.at(-1)?.split(':')[1] ?? '');
    if (subagent === undefined) return end;
    const cause = { cause: { type: 'toolCall', tool_call_id: subagent.callId } };
    return { graph_name: subagent.name, ...(event === 'started' ? cause : end) };
  }

  /** Each is asked for once, though the graph tells of it several times. */
  #requests(namespace: readonly string[], interrupts: unknown): NewEvent[] {
    if (!Array.isArray(interrupts)) return [];
    return interrupts.flatMap((interrupt) => {
      const { id, value } = fieldsOf(interrupt);
      if (typeof id !== 'string' || this.#requested.has(id)) return [];
      this.#requested.add(id);
      return [this.#event('input.requested', namespace, { interrupt_id: id, payload: value })];
    });
  }
}

/** A tool that asks for an approval is told of as one that has failed, with the list of what it asks. */
function isInterrupt({ event, message }: Fields): boolean {
  if (event !== 'tool-error' || typeof message !== 'string' || !message.startsWith('[')) return false;
  const interrupts = parsed(message);
  return (
    Array.isArray(interrupts) &&
    interrupts.length > 0 &&
    interrupts.every((interrupt) => 'value' in fieldsOf(interrupt))
  );
}

/** The graph tells what a tool was called with as text. */
function inputOf({ event, input }: Fields): Fields {
  if (event !== 'tool-started' || typeof input !== 'string') return {};
  const read = parsed(input);
  return typeof read === 'object' && read !== null ? { input: read } : {};
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
