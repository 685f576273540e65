import { inferChannel, type ProtocolEvent } from '@langchain/langgraph/stream';
import type { NewEvent } from '../storage/schema.ts';
import { type Fields, fieldsOf, plainJson } from './messages.ts';

/** Name of the event that reports a gap in the log. If a graph sends an event with this name, the event is renamed. */
export const MISSED_EVENTS = 'missed_events';

export type LifecycleStatus = 'running' | 'completed' | 'failed' | 'interrupted';

/**
 * Converts a graph's events to events of the protocol, with these differences:
 * - An interrupt becomes `input.requested`.
 * - Events of a subagent get its name and the tool call that started it.
 * - The events for a run's start and end are written by the run itself. The end follows the last checkpoint.
 * - States of the main graph are not logged. Their events name a checkpoint, whose state the event stream loads.
 * - `tasks` events are dropped, because they repeat all messages of the thread.
 */
export class RunEvents {
  readonly #runId: string;
  readonly #graphName: string;
  /** Calls of the `task` tool, by the id of the graph's task. That id is part of the namespace. */
  readonly #subagents = new Map<string, { readonly callId: string; readonly name: string }>();
  /** Errors of tools by namespace. Errors are kept because the graph reports a failed tool as completed. */
  readonly #failures = new Map<string, unknown>();
  readonly #requested = new Set<string>();
  #checkpointId: unknown;

  constructor(runId: string, graphName: string) {
    this.#runId = runId;
    this.#graphName = graphName;
  }

  /** Whether the run is waiting for an answer. */
  get isInputRequested(): boolean {
    return this.#requested.size > 0;
  }

  convert({ method, params }: ProtocolEvent): NewEvent[] {
    const { namespace, node, timestamp } = params;
    const data = fieldsOf(params.data);
    const event = (eventData: unknown): NewEvent => this.#event(method, namespace, { timestamp, node }, eventData);
    switch (method) {
      case 'lifecycle':
        return namespace.length === 0 ? [] : [event({ ...data, ...this.#subagent(namespace, data) })];
      case 'tasks':
        this.#noteTask(data);
        return [];
      case 'tools':
        if (isInterrupt(data)) return [];
        if (data.event === 'tool-error') this.#failures.set(namespace.join('|'), data.message);
        return [event({ ...data, ...parsedInput(data) })];
      case 'updates':
        return node === '__interrupt__' ? this.#requests(namespace, data.values) : [event(params.data)];
      case 'checkpoints':
        if (namespace.length === 0) this.#checkpointId = data.id;
        return [event(data)];
      case 'values': {
        const { __interrupt__, ...values } = data;
        const requests = this.#requests(namespace, __interrupt__);
        if (Object.keys(values).length === 0) return requests;
        if (namespace.length > 0) return [event(values), ...requests];
        const head = { timestamp, node, checkpoint_id: this.#checkpointId };
        return [this.#event(method, namespace, head, undefined), ...requests];
      }
      case 'custom':
        return [event(data.name === MISSED_EVENTS ? { ...data, name: `graph.${MISSED_EVENTS}` } : params.data)];
      default:
        return [event(params.data)];
    }
  }

  /** Returns an event about the run as a whole. */
  lifecycle(status: LifecycleStatus, fields: Fields = {}): NewEvent {
    return this.#event('lifecycle', [], {}, { event: status, graph_name: this.#graphName, ...fields });
  }

  #event(method: string, namespace: readonly string[], head: Fields, data: unknown): NewEvent {
    const params = { namespace, timestamp: Date.now(), run_id: this.#runId, ...head };
    const typed = { namespace: [...namespace], timestamp: params.timestamp, data };
    const channel = inferChannel({ method, params: typed }) ?? method;
    const body = `${JSON.stringify({ method, params }).slice(0, -2)}${data === undefined ? '' : `,"data":${plainJson(data)}`}}}`;
    return { channel, namespace, body };
  }

  #noteTask({ id, input }: Fields): void {
    const call = fieldsOf(fieldsOf(input).lg_tool_call ?? fieldsOf(input).tool_call);
    if (typeof id !== 'string' || call.name !== 'task' || typeof call.id !== 'string') return;
    this.#subagents.set(id, { callId: call.id, name: String(fieldsOf(call.args).subagent_type ?? 'task') });
  }

  /** Returns the fields about a subagent that the graph's own lifecycle event does not contain. */
  #subagent(namespace: readonly string[], { event }: Fields): Fields {
    const place = namespace.join('|');
    const isFailed = event === 'completed' && this.#failures.has(place);
    const end = isFailed ? { event: 'failed', error: this.#failures.get(place) } : {};
    const subagent = this.#subagents.get(namespace.at(-1)?.split(':')[1] ?? '');
    if (subagent === undefined) return end;
    const cause = { cause: { type: 'toolCall', tool_call_id: subagent.callId } };
    return { graph_name: subagent.name, ...(event === 'started' ? cause : end) };
  }

  /**
   * Returns the requests for input. The graph reports an interrupt several times, but the protocol requests each input
   * only once.
   */
  #requests(namespace: readonly string[], interrupts: unknown): NewEvent[] {
    if (!Array.isArray(interrupts)) return [];
    return interrupts.flatMap((interrupt) => {
      const { id, value } = fieldsOf(interrupt);
      if (typeof id !== 'string' || this.#requested.has(id)) return [];
      this.#requested.add(id);
      return [this.#event('input.requested', namespace, {}, { interrupt_id: id, payload: value })];
    });
  }
}

/**
 * Whether a tool that seems to have failed has called `interrupt`. The graph reports such a tool as failed, with the
 * list of interrupts as the message.
 */
function isInterrupt({ event, message }: Fields): boolean {
  if (event !== 'tool-error' || typeof message !== 'string' || !message.startsWith('[')) return false;
  const interrupts = parsed(message);
  return Array.isArray(interrupts) && interrupts.length > 0 && interrupts.every((one) => 'value' in fieldsOf(one));
}

/** Parses the input of a tool, which the graph reports as text. */
function parsedInput({ event, input }: Fields): Fields {
  if (event !== 'tool-started' || typeof input !== 'string') return {};
  const value = parsed(input);
  return typeof value === 'object' && value !== null ? { input: value } : {};
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
