import type { Limits } from '../base/limits.ts';
import type { CapturePolicy } from '../run/sink.ts';
import type { DropNotice, Ledger } from './ledger.ts';
import type { EndingExporter } from './process-end.ts';
import type { Sender, SenderOptions } from './sender.ts';
import type { SendGate, ServiceInfo } from './service.ts';
import type { Spool } from './spool/spool.ts';

/** The parts of an exporter. Its states, loop and disk policy use the same. */
export interface ExporterParts {
  readonly capture: CapturePolicy;
  readonly limits: Limits;
  /** Creates the sender. `heldBytes` is an option of it. */
  readonly sender: (heldBytes: SenderOptions['heldBytes']) => Sender;
  readonly info: ServiceInfo;
  readonly gate: SendGate;
  /** Where runs are kept on disk; undefined with durability `memory`. */
  readonly spool: Spool | undefined;
  /** Whether every record is on disk before the call of the application returns. */
  readonly isWriteAhead: boolean;
  readonly ledger: Ledger;
  readonly notice: DropNotice;
  readonly endpoint: string;
  readonly monotonicMs: () => number;
  readonly random: () => number;
  readonly delay: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly opened: (exporter: EndingExporter) => void;
  readonly closed: (exporter: EndingExporter) => Promise<void>;
}

/** The parts of an exporter that keeps runs on disk. */
export type SpoolingParts = ExporterParts & { readonly spool: Spool };
