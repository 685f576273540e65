import type { Checks } from '../base/options.ts';
import { commonChecks, usableOptions } from '../run/run-options.ts';
import type { RunSink } from '../run/sink.ts';

/** How the calls of a wrapped SDK client are traced. Everything is optional. */
export interface TracedClientOptions {
  /** Tags of every call: at most 1 000; a longer list is left out. */
  tags?: readonly string[];
  /** Metadata of every call. Overrides recorded metadata: `{ ls_provider: 'ollama' }` sets the provider. */
  metadata?: Readonly<Record<string, unknown>>;
  /** The project that runs are recorded in. @default the current run's project, else the exporter's */
  project?: string;
  /** The id of the project, as an alternative to its name. */
  projectId?: string;
  /** The exporter that receives the runs. @default the current run's exporter, else the configured one */
  exporter?: RunSink;
  /** False leaves the client as it is. @default true */
  enabled?: boolean;
}

const { tags, metadata, project, projectId, exporter } = commonChecks;

const checks: Checks<TracedClientOptions> = {
  tags,
  metadata,
  project,
  projectId,
  exporter,
  enabled: ['true or false', (value) => typeof value === 'boolean'],
};

/** The options that hold; the others are told, once per place. */
export function clientOptionsOf(place: string, options: unknown): Partial<TracedClientOptions> {
  return usableOptions<TracedClientOptions>(place, options, checks);
}
