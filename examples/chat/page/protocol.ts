/** What the server sends, as far as the page reads it. All of it is read leniently: fields may be missing, others may come. */
export type Fields = Readonly<Record<string, unknown>>;

export interface ProtocolEvent {
  readonly event_id?: string;
  /** Grows with each event of the thread. */
  readonly seq?: number;
  readonly method: string;
  readonly params: {
    readonly namespace: readonly string[];
    readonly timestamp?: number;
    readonly run_id?: string;
    /** Of a state that has not all messages: how many stay of the one before. */
    readonly kept?: number;
    readonly data: unknown;
  };
}

/** A thread as it was at one of its checkpoints. */
export interface ThreadState {
  readonly values: { readonly messages?: readonly Fields[] };
  /** In a list: how many messages stay of the state before it. */
  readonly kept?: number;
  readonly next: readonly string[];
  readonly tasks: readonly { readonly interrupts?: readonly { readonly id?: string; readonly value: unknown }[] }[];
  readonly checkpoint: { readonly checkpoint_id: string | null } | null;
  readonly parent_checkpoint: { readonly checkpoint_id: string | null } | null;
  readonly metadata: Fields;
  readonly created_at: string | null;
}

export interface ThreadSummary {
  readonly id: string;
  readonly title: string;
  readonly updatedAt: string | null;
}

/** What the server says of itself. */
export interface Info {
  readonly agent: string;
  readonly model: { readonly name: string; readonly is_local: boolean };
  readonly tracing: { readonly is_on: boolean; readonly viewer_url: string | null };
  readonly feedback_keys: readonly string[];
}

export function checkpointOf(state: ThreadState): string | undefined {
  return state.checkpoint?.checkpoint_id ?? undefined;
}

export function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}

export function stringOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
