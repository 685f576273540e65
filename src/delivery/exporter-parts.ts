import type { Limits, Tuning } from '../config/limits.ts';
import type { CapturePolicy, RunPlace } from '../run/sink.ts';
import type { Endpoint } from './endpoint.ts';
import type { DropNotice, Ledger } from './ledger.ts';
import type { EndingExporter } from './process-end.ts';
import type { Spool } from './spool/spool.ts';
import type { Sender, SenderOptions } from './wire/sender.ts';
import type { ServiceInfo } from './wire/service-info.ts';

export interface ExporterParts {
  readonly capture: CapturePolicy;
  readonly limits: Limits & Tuning;
  readonly sender: (waitingBytes: SenderOptions['waitingBytes']) => Sender;
  readonly info: ServiceInfo;
  /** Whether the start of a run may be sent before its end. */
  readonly sendsStarts: boolean;
  readonly endpoint: Endpoint;
  /** The folder for undelivered runs. Undefined if `durability` is `memory`. */
  readonly spool: Spool | undefined;
  /** The command that sends the runs which this process leaves on disk. Undefined if `runspan dev` sends them. */
  readonly sendCommand: string | undefined;
  readonly isWriteAhead: boolean;
  readonly ledger: Ledger;
  readonly notice: DropNotice;
  /** The endpoint's origin, for log lines. */
  readonly address: string;
  readonly urlOf: (run: RunPlace) => string | undefined;
  readonly monotonicMs: () => number;
  readonly random: () => number;
  readonly delay: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Whether a connection may still read the body of an answered request. */
  readonly isWriting: () => boolean;
  /** Aborts all requests. Undefined if requests do not keep the process alive. */
  readonly abort: (() => void) | undefined;
  readonly opened: (exporter: EndingExporter) => void;
  readonly closed: (exporter: EndingExporter) => Promise<void>;
}

export type SpoolingParts = ExporterParts & { readonly spool: Spool };
