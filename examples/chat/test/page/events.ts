import type { Fields, ProtocolEvent, ThreadState } from '../../page/protocol.ts';

/** Events of one run, written down by hand: each a method, its data, and the namespace where that is not the root. */
export function eventsOf(
  runId: string,
  ...events: readonly (readonly [string, Fields, ...string[]])[]
): ProtocolEvent[] {
  return events.map(([method, data, ...namespace]) => ({ method, params: { namespace, run_id: runId, data } }));
}

export const human = (id: string, content: string): Fields => ({ type: 'human', id, content });
export const ai = (id: string, content: unknown, tool_calls: readonly Fields[] = []): Fields => ({
  type: 'ai',
  id,
  content,
  tool_calls,
});

/** The pieces of a message, as they stream. */
export function pieces(
  id: string,
  texts: readonly string[],
  ...namespace: readonly string[]
): ReturnType<typeof one>[] {
  const at = namespace.length === 0 ? ['model:1'] : namespace;
  return [
    one('messages', { event: 'message-start', id }, at),
    ...texts.map((text) =>
      one('messages', { event: 'content-block-delta', index: 0, delta: { type: 'text-delta', text } }, at),
    ),
  ];
}

export function state(
  id: string,
  messages: readonly Fields[],
  { parent = null, next = [], source = 'loop', interrupts = [], run }: StateFacts = {},
): ThreadState {
  return {
    values: { messages },
    next,
    tasks: [{ interrupts }],
    checkpoint: { checkpoint_id: id },
    parent_checkpoint: parent === null ? null : { checkpoint_id: parent },
    metadata: { source, ...(run === undefined ? {} : { run_id: run }) },
    created_at: '2026-11-20T07:00:00Z',
  };
}

interface StateFacts {
  readonly parent?: string | null;
  readonly next?: readonly string[];
  readonly source?: string;
  readonly interrupts?: readonly { readonly id: string; readonly value: unknown }[];
  readonly run?: string;
}

function one(method: string, data: Fields, namespace: readonly string[]): readonly [string, Fields, ...string[]] {
  return [method, data, ...namespace];
}
