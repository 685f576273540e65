import type { Channel } from 'node:diagnostics_channel';
import { channel } from '../base/node.ts';

/** The reason why a run was dropped. */
export type DropReason = 'queue_full' | 'too_large' | 'rejected' | 'expired' | 'corrupt' | 'closed';

/** A dropped run, as passed to `onDrop`. If the run was read from a damaged file, missing fields are empty. */
export interface DroppedRun {
  readonly id: string;
  readonly traceId: string;
  readonly name: string;
  /** The cause, for example the HTTP status that the service returned. */
  readonly detail?: string;
}

/**
 * Number of runs at each stage. Each run is counted in exactly one stage:
 *
 *     created + recovered = open + queued + inFlight + spooled + sent + dropped
 *
 * `stats()` returns a snapshot, which does not change later.
 */
export interface Stats {
  created: number;
  /** Runs found in files from an earlier process, including unreadable runs. */
  recovered: number;
  /** Runs that have started and not ended. */
  open: number;
  /** Ended runs that are waiting to be sent. */
  queued: number;
  /** Ended runs that are being sent. */
  inFlight: number;
  /** Ended runs that are stored on disk. */
  spooled: number;
  /** Runs whose end was accepted by the service. */
  sent: number;
  /** Runs that were dropped, completely or in part. */
  dropped: number;
  /** Number of dropped runs for each reason. */
  droppedByReason: Record<DropReason, number>;
  /** Runs left out by sampling. Not included in `created`. */
  sampledOut: number;
  /** Number of requests sent, including retries, by kind. */
  requests: { multipart: number; simple: number };
  /** The records in memory that wait to be sent or are being sent. */
  backlog: Backlog;
  /** Request durations. Undefined until the first request has ended. */
  latency: Latency | undefined;
  /** The most recent failed request, even if delivery has since recovered. Undefined if no request has failed. */
  lastError: DeliveryError | undefined;
}

/** The run records that wait for delivery. */
export interface Backlog {
  /** Total bytes over all exporters. `limits.queueBytes` applies to each exporter separately. */
  bytes: number;
  /** Age of the oldest record in any exporter, in milliseconds, or 0 if there are no records. */
  oldestMs: number;
}

/**
 * Durations of each exporter's latest 500 requests. A request ends with the last byte of its response, or when it
 * fails. Percentiles use the nearest rank, so with fewer than 100 requests, `p99Ms` is the maximum.
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
 * The messages on each `node:diagnostics_channel` channel, by channel name. Subscribers are called synchronously. An
 * error thrown by a subscriber becomes an uncaught exception.
 */
export interface ChannelMessages {
  /** Published when a request that contains runs has ended, with or without a response. */
  'runspan:request:end': RequestMessage;
  /** Published when a run was dropped. */
  'runspan:run:dropped': DropMessage;
  /** Published when requests start to fail. */
  'runspan:delivery:outage': OutageMessage;
  /** Published when the service accepts runs again after an outage. */
  'runspan:delivery:recovery': RecoveryMessage;
}

/** The message when a request with runs has ended. */
export interface RequestMessage {
  /** Origin of the service. */
  readonly endpoint: string;
  /** A `multipart` request contains a batch. A `simple` request contains the start or the end of one run. */
  readonly kind: 'multipart' | 'simple';
  /** The response status, or undefined if no response arrived. */
  readonly status: number | undefined;
  /** The reason for the failure, or undefined if the service accepted the request. */
  readonly error: string | undefined;
  /** Time from sending the request until the response is complete or the request fails, in milliseconds. */
  readonly durationMs: number;
  /** Number of run records in the request. */
  readonly runs: number;
  /** Number of body bytes that were sent. */
  readonly bytes: number;
}

/** The message when a run was dropped. */
export interface DropMessage {
  /** Origin of the service. */
  readonly endpoint: string;
  readonly reason: DropReason;
  readonly run: DroppedRun;
}

/** The message when requests start to fail. */
export interface OutageMessage {
  /** Origin of the service. */
  readonly endpoint: string;
  readonly error: string;
}

/** The message when the service accepts runs again. */
export interface RecoveryMessage {
  /** Origin of the service. */
  readonly endpoint: string;
  /** Time from the first failed request in the outage to the first accepted request, in milliseconds. */
  readonly durationMs: number;
}

// References each channel, because an unreferenced channel could be garbage-collected together with its subscribers.
const channels: { readonly [Name in keyof ChannelMessages]: Channel } = {
  'runspan:request:end': channel('runspan:request:end'),
  'runspan:run:dropped': channel('runspan:run:dropped'),
  'runspan:delivery:outage': channel('runspan:delivery:outage'),
  'runspan:delivery:recovery': channel('runspan:delivery:recovery'),
};

let isPublishing = false;

export function publish<Name extends keyof ChannelMessages>(name: Name, messageOf: () => ChannelMessages[Name]): void {
  // A traced subscriber's run may publish another message, which would start an endless loop.
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
