import type { TraceableOptions } from '../instrument/plan.ts';
import { checkedOptions, commonChecks, type OptionCheck } from '../run/run-options.ts';
import type { RunSink } from '../run/sink.ts';

/** How the calls of a client are traced. */
export interface WrapOptions {
  /** Of every run. */
  tags?: readonly string[];
  /** Of every run, beside what is read from the call. */
  metadata?: Readonly<Record<string, unknown>>;
  /** The project to trace into. @default that of the run around the call, else that of the exporter */
  project?: string;
  /** Where the runs go. @default where the run around the call goes, else the configured one */
  exporter?: RunSink;
  /** False gives the client back as it is. @default true */
  enabled?: boolean;
}

const { tags, metadata, project, exporter } = commonChecks;

const wrapChecks: Readonly<Record<keyof WrapOptions & keyof TraceableOptions, OptionCheck>> = {
  tags,
  metadata,
  project,
  exporter,
  enabled: ['true or false', (value) => typeof value === 'boolean'],
};

/** The options that hold; what does not is told once and left out. */
export function wrapOptions(place: string, given: unknown): Partial<WrapOptions> {
  return checkedOptions<WrapOptions>(place, given, wrapChecks);
}
