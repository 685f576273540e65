import type { Limits } from '../config/limits.ts';
import type { CapturePolicy } from '../run/sink.ts';
import type { DropNotice, Ledger } from './ledger.ts';
import type { EndingExporter } from './process-end.ts';
import type { Spool } from './spool/spool.ts';
import type { Sender, SenderOptions } from './wire/sender.ts';
import type { SendGate, ServiceInfo } from './wire/service.ts';

/** Objects that the classes of an exporter share. */
export interface ExporterParts {
  readonly capture: CapturePolicy;
  readonly limits: Limits;
  readonly sender: (heldBytes: SenderOptions['heldBytes']) => Sender;
  readonly info: ServiceInfo;
  readonly gate: SendGate;
  /** The folder for undelivered runs. Undefined if `durability` is `memory`. */
  readonly spool: Spool | undefined;
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

export type SpoolingParts = ExporterParts & { readonly spool: Spool };
