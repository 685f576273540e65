import { sizeOf } from '../payload/attachment.ts';
import type { RunRecord, RunType } from '../run/record.ts';

/** What a test asks of a run: what the program did, under the names of the API. */
export interface RunFacts {
  name: string;
  runType: RunType;
  project: string | undefined;
  /** Whether the run has not ended yet. */
  open: boolean;
  inputs: Record<string, unknown>;
  /** Undefined while the run is open, and when it failed without any. */
  outputs: Record<string, unknown> | undefined;
  /** The first line, `Name: message`. */
  error: string | undefined;
  events: EventFacts[] | undefined;
  tags: string[] | undefined;
  metadata: Record<string, unknown> | undefined;
  attachments: AttachmentFacts[] | undefined;
}

/** An event without its time. */
export interface EventFacts {
  name: string;
  data?: Record<string, unknown>;
}

/** An attachment without its bytes. */
export interface AttachmentFacts {
  name: string;
  mimeType: string;
  /** Bytes. */
  size: number;
}

/** The facts of a record. Ids, times, the order and what the process runs on are none. */
export function factsOf(run: RunRecord): RunFacts {
  const { attachments } = run as { attachments?: readonly AnyAttachment[] };
  return {
    name: run.name,
    runType: run.run_type,
    project: run.session_name ?? run.session_id,
    open: run.end_time === undefined,
    inputs: run.inputs,
    outputs: run.outputs,
    error: run.error?.split('\n', 1)[0],
    events: run.events?.map(({ name, kwargs }) => (kwargs === undefined ? { name } : { name, data: kwargs })),
    tags: run.tags,
    metadata: run.extra?.metadata,
    attachments: attachments?.map(attachmentFacts),
  };
}

/** As a recorder keeps it, with its bytes, or as a receiver tells of it. */
type AnyAttachment =
  | { readonly name: string; readonly mimeType: string; readonly bytes: Uint8Array | Blob }
  | { readonly name: string; readonly mime_type: string; readonly size: number };

function attachmentFacts(attachment: AnyAttachment): AttachmentFacts {
  const { name } = attachment;
  return 'bytes' in attachment
    ? { name, mimeType: attachment.mimeType, size: sizeOf(attachment.bytes) }
    : { name, mimeType: attachment.mime_type, size: attachment.size };
}
