import { inferChannel, type ProtocolEvent } from '@langchain/langgraph/stream';
import type { NewEvent } from '../storage/schema.ts';
import { type Fields, fieldsOf, plainJson } from './messages.ts';

/** The event that reports a gap in the log. An event of the graph with this name is renamed. */
export const MISSED_EVENTS = 'missed_events';

export type LifecycleStatus = 'running' | 'completed' | 'failed' | 'interrupted';

/**
 * Converts the events of a graph to events of the protocol, with these differences:
 * - An interrupt becomes `input.requested`.
 * - A subagent gets its name, and the tool call that started it.
 * - The run itself writes the start and the end of the run, the end after its last checkpoint.
 * - States of the main graph are not logged. Their events name a checkpoint, and the event stream loads its state.
 * - `tasks` events are dropped, because they repeat all messages of the thread.
 */
export class RunEvents {
  readonly #runId: string;
  readonly #graphName: string;
  /** Calls of the `task` tool, by the id of the task of the graph, which is part of the namespace. */
  readonly #subagents = new Map<string, { readonly callId: string; readonly name: string }>();
  /** Errors of tools by namespace. The graph reports these tools as completed. */
  readonly #failures = new Map<string, unknown>();
  readonly #requested = new Set<string>();
  #checkpointId: unknown;

  constructor(runId: string, graphName: string) {
    this.#runId = runId;
    this.#graphName = graphName;
  }

  /** Whether the run waits for an answer. */
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

  /** An event about the run as a whole. */
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

  /** Fields that the graph's own lifecycle event of a part of the graph lacks. */
  #subagent(namespace: readonly string[], { event }: Fields): Fields {
    const place = namespace.join('|');
    const isFailed = event === 'completed' && this.#failures.has(place);
    const end = isFailed ? { event: 'failed', error: this.#failures.get(place) } : {};
    const subagent = this.#subagents.get(namespace.at(-1)?.split(':')[1] ?? '');
    if (subagent === undefined) return end;
    const cause = { cause: { type: 'toolCall', tool_call_id: subagent.callId } };
    return { graph_name: subagent.name, ...(event === 'started' ? cause : end) };
  }

  /** The graph reports an interrupt several times; the protocol requests each input once. */
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

/** The graph reports a tool that calls `interrupt` as failed, with the list of interrupts as its message. */
function isInterrupt({ event, message }: Fields): boolean {
  if (event !== 'tool-error' || typeof message !== 'string' || !message.startsWith('[')) return false;
  const interrupts = parsed(message);
  return Array.isArray(interrupts) && interrupts.length > 0 && interrupts.every((one) => 'value' in fieldsOf(one));
}

/** The graph reports the input of a tool as text. */
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
