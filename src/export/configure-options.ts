import type { Dispatcher } from 'undici';
import type { Log } from '../base/diagnostics.ts';
import type { Limits } from '../base/limits.ts';
import type { Redaction } from '../payload/redact.ts';
import type { Sampler } from '../run/sampling.ts';
import type { OnDrop } from './drop-notice.ts';

/**
 * Options of `configure` and `createExporter`. Each is optional; what is not given comes from the environment variable
 * named with it, else from the default. What does not hold is told in one line and left out.
 */
export interface ConfigureOptions {
  /** Address of the service, for example `http://127.0.0.1:4777`; tracing is off without one. `RUNSPAN_ENDPOINT` */
  endpoint?: string;
  /**
   * The API key, sent as `x-api-key`, and only to the endpoint. If it is an empty string, no key is sent. A function is
   * called for each request, with tracing off, and returns the key or a promise of it. If the function throws, rejects
   * or returns no key, the request is not sent. The runs are kept and sent later, as after a 401. `RUNSPAN_API_KEY`
   */
  apiKey?: string | (() => string | Promise<string>);
  /** The id of the workspace, needed if the key has access to several. `RUNSPAN_WORKSPACE_ID` */
  workspaceId?: string;
  /** The name of the project that runs are recorded in. `RUNSPAN_PROJECT` @default 'default' */
  project?: string;
  /** The id of the project, as an alternative to its name. `RUNSPAN_PROJECT_ID` */
  projectId?: string;
  /** False turns tracing off. `RUNSPAN_TRACING` @default true when there is an endpoint */
  tracing?: boolean;
  /**
   * The share of traces to record, from 0 to 1. Decided by the id of the trace when its first run starts, alike in every
   * process: a trace is recorded whole or not at all. `RUNSPAN_SAMPLE_RATE` @default 1
   */
  sampleRate?: number;
  /** Decides by the first run of a trace, in the place of `sampleRate`, which stands for what it answers with undefined. */
  sampler?: Sampler;
  /** Records no inputs. `RUNSPAN_HIDE_INPUTS` @default false */
  hideInputs?: boolean;
  /** Records no outputs. `RUNSPAN_HIDE_OUTPUTS` @default false */
  hideOutputs?: boolean;
  /**
   * What is hidden of every run, before it is queued: what `redact` gives. Anything else hides every payload.
   *
   * @default values under names such as `authorization` and `password`
   */
  redact?: Redaction;
  /**
   * Allows the API key and headers with credentials to be sent to other hosts over plain HTTP. `RUNSPAN_ALLOW_INSECURE`
   * @default false
   */
  allowInsecure?: boolean;
  /**
   * Which undelivered runs survive the process; see `docs/delivery.md`. `memory`: none. `spill`: runs that are
   * undelivered when the process ends normally or by `process.exit`, and runs that are queued while the service is
   * unreachable or the queue is half full. `write-ahead`: all data recorded by calls that have returned, even after
   * `kill -9`. `RUNSPAN_DURABILITY` @default 'memory'
   */
  durability?: Durability;
  /**
   * Folder for runs kept on disk, readable only by its owner. `RUNSPAN_SPOOL_DIR` @default '.runspan/spool' in the home
   * folder
   */
  spoolDir?: string;
  /**
   * Interval in milliseconds at which data on disk is synced to the device, in the background. After a loss of power, only
   * runs that started or ended in the last interval are missing. Without it, the operating system decides when to
   * write. Needs `durability: 'write-ahead'` or `'spill'`.
   *
   * @default no sync
   */
  syncEveryMs?: number;
  /** Limits, as listed in `docs/configuration.md`. */
  limits?: Partial<Limits>;
  /**
   * Headers sent with every request, as an object, `Headers`, a `Map` or a list of pairs. A function is called for each
   * request, like an `apiKey` function, and returns one of these or a promise of it. Headers with credentials are subject to
   * the same restriction on plain HTTP as the API key.
   */
  headers?: HeaderFields | (() => HeaderFields | Promise<HeaderFields>);
  /** An undici dispatcher that sends the requests, for example a `ProxyAgent`. */
  dispatcher?: Dispatcher;
  /** Called for every run that is given up. Errors that it throws are ignored. */
  onDrop?: OnDrop;
  /**
   * Delivers what is queued when SIGTERM, SIGINT or SIGHUP would end the process, for `limits.exitFlushMs` at the most, then
   * lets it end by that signal. A second one ends it at once. Nothing is done where the application listens for the signal
   * itself, in worker threads, and on Windows.
   *
   * @default false
   */
  handleSignals?: boolean;
  /** Where diagnostics of the library go, for the whole process. `RUNSPAN_LOG` @default 'warn' */
  log?: Log;
}

/** Header names and values. */
export type HeaderFields = Readonly<Record<string, string>> | Iterable<readonly [name: string, value: string]>;

/** What survives the process. */
export type Durability = 'memory' | 'spill' | 'write-ahead';
