import type { Channel } from 'node:diagnostics_channel';
import { channel } from '../platform/node.ts';

/** The reason why a run was dropped. */
export type DropReason = 'queue_full' | 'too_large' | 'rejected' | 'repeated' | 'expired' | 'corrupt' | 'closed';

/** The dropped run that `onDrop` receives. If the run was read from a damaged file, missing fields are empty. */
export interface DroppedRun {
  readonly id: string;
  readonly traceId: string;
  readonly name: string;
  /** The cause, for example the HTTP status that the service returned. */
  readonly detail?: string;
}

/**
 * Number of runs at each stage of delivery. Each run is counted in exactly one stage:
 *
 *     created + recovered = open + queued + inFlight + spooled + sent + dropped
 *
 * `stats()` returns a snapshot that does not change later.
 */
export interface Stats {
  created: number;
  /** Number of runs found in files from an earlier process, including unreadable runs. */
  recovered: number;
  /** Number of runs that have started but not ended. */
  open: number;
  /** Number of ended runs that are waiting to be sent. */
  queued: number;
  /** Number of ended runs that are being sent. */
  inFlight: number;
  /** Number of ended runs that are stored on disk. */
  spooled: number;
  /** Number of completed runs that the service has accepted. */
  sent: number;
  /** Number of runs that were dropped, completely or in part. */
  dropped: number;
  /** Number of dropped runs for each reason. */
  droppedByReason: Record<DropReason, number>;
  /** Number of runs left out by sampling, not included in `created`. A call that two sources see counts twice. */
  sampledOut: number;
  /** Number of runs that `keep` holds. Each of them becomes `created` or `sampledOut` later. */
  held: number;
  /** Number of requests of each kind, including retries. */
  requests: Record<RequestKind, number>;
  /** Run data in memory that is waiting to be sent or is being sent. */
  backlog: Backlog;
  /** Request durations, or undefined until the first request has ended. */
  latency: Latency | undefined;
  /** The most recent failed request, or undefined if no request has failed. Kept after delivery has recovered. */
  lastError: DeliveryError | undefined;
}

/** The run data that is waiting for delivery. */
export interface Backlog {
  /** Total size across all exporters, in bytes. `limits.queueBytes` applies to each exporter separately. */
  bytes: number;
  /** Age of the oldest waiting data in any exporter, in milliseconds, or 0 if no data is waiting. */
  oldestMs: number;
}

/**
 * Durations of each exporter's latest 500 requests. A request ends when its response is complete or the request fails.
 * Percentiles use the nearest-rank method. With fewer than 100 requests, `p99Ms` is the longest duration.
 */
export interface Latency {
  p50Ms: number;
  p99Ms: number;
}

/** The most recent failed request of any exporter. */
export interface DeliveryError {
  /** ISO 8601 timestamp in UTC. */
  at: string;
  /** The response status or the connection error. Contains no API key, payload or URL credentials. */
  message: string;
}

let read: (() => Stats) | undefined;

export function registerStats(reader: () => Stats): void {
  read = reader;
}

export function currentStats(): Stats | undefined {
  return read?.();
}

/**
 * The message type of each `node:diagnostics_channel` channel, by channel name. Subscribers are called synchronously.
 * An error thrown by a subscriber becomes an uncaught exception.
 */
export interface ChannelMessages {
  /** Published when a request with runs has ended, with or without a response. */
  'runspan:request:end': RequestMessage;
  /** Published when a run was dropped. */
  'runspan:run:dropped': DropMessage;
  /** Published when requests start to fail. */
  'runspan:delivery:outage': OutageMessage;
  /** Published when the service accepts runs again after an outage. */
  'runspan:delivery:recovery': RecoveryMessage;
}

/**
 * The kind of a request. A `multipart` or `otlp` request contains a batch. A `simple` request contains the start or the
 * end of one run.
 */
export type RequestKind = 'multipart' | 'simple' | 'otlp';

/** Message that is published when a request with runs has ended. */
export interface RequestMessage {
  /** Origin of the service. */
  readonly endpoint: string;
  readonly kind: RequestKind;
  /** The response status, or undefined if no response arrived. */
  readonly status: number | undefined;
  /** The reason why the request failed, or undefined if the service accepted the request. */
  readonly error: string | undefined;
  /** Time until the response is complete or the request fails, in milliseconds. */
  readonly durationMs: number;
  /** Number of runs that the request creates or updates. */
  readonly runs: number;
  /** Size of the request body that was sent, in bytes. */
  readonly bytes: number;
}

/** Message that is published when a run was dropped. */
export interface DropMessage {
  /** Origin of the service. */
  readonly endpoint: string;
  readonly reason: DropReason;
  readonly run: DroppedRun;
}

/** Message that is published when requests start to fail. */
export interface OutageMessage {
  /** Origin of the service. */
  readonly endpoint: string;
  readonly error: string;
}

/** Message that is published when the service accepts runs again. */
export interface RecoveryMessage {
  /** Origin of the service. */
  readonly endpoint: string;
  /** Time between the first failed request and the first accepted request, in milliseconds. */
  readonly durationMs: number;
}

// Channels must be referenced, because an unreferenced channel could be garbage-collected with its subscribers.
const channels: { readonly [Name in keyof ChannelMessages]: Channel } = {
  'runspan:request:end': channel('runspan:request:end'),
  'runspan:run:dropped': channel('runspan:run:dropped'),
  'runspan:delivery:outage': channel('runspan:delivery:outage'),
  'runspan:delivery:recovery': channel('runspan:delivery:recovery'),
};

let isPublishing = false;

export function publish<Name extends keyof ChannelMessages>(name: Name, messageOf: () => ChannelMessages[Name]): void {
  // If a subscriber is traced, its run may publish another message and start an endless loop.
  if (isPublishing || !channels[name].hasSubscribers) return;
  isPublishing = true;
  try {
    channels[name].publish(messageOf());
  } finally {
    isPublishing = false;
  }
}

export function subscribe<Name extends keyof ChannelMessages>(
  name: Name,
  listener: (message: ChannelMessages[Name]) => void,
): () => void {
  const onMessage = (message: unknown): void => listener(message as ChannelMessages[Name]);
  channels[name].subscribe(onMessage);
  return () => void channels[name].unsubscribe(onMessage);
}
