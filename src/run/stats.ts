import { type Channel, channel } from 'node:diagnostics_channel';

/** Why runs were given up; the words are part of the public interface. */
export type DropReason = 'queue_full' | 'too_large' | 'rejected' | 'expired' | 'corrupt' | 'closed';

/**
 * A run that was given up, as `onDrop` is told of it. What a damaged file of an earlier process does not tell any more is
 * empty text.
 */
export interface DroppedRun {
  readonly id: string;
  readonly traceId: string;
  readonly name: string;
  /** What led to it, for example the status that the service answered with. */
  readonly detail?: string;
}

/**
 * Where every run is that was ever created, each counted once:
 *
 *     created + recovered = open + queued + inFlight + spooled + sent + dropped
 *
 * Beside that ledger stands how delivery is doing. It is a copy; nothing in it changes later.
 */
export interface Stats {
  created: number;
  /** Taken over from an earlier process, with those that it has left and that could not be read. */
  recovered: number;
  /** Started, and the end not yet recorded. */
  open: number;
  /** Ended, with some part waiting to be sent. */
  queued: number;
  /** Ended, with all that is left of it under way. */
  inFlight: number;
  /** Ended, and kept on disk. */
  spooled: number;
  /** The service has accepted its end. */
  sent: number;
  /** Some part of it was given up. */
  dropped: number;
  /** The same by reason. */
  droppedByReason: Record<DropReason, number>;
  /** Left out by sampling; no loss, and not part of the sum. */
  sampledOut: number;
  /** Requests sent, retries included, by endpoint kind. */
  requests: { multipart: number; simple: number };
  /** What is recorded in memory and not yet settled, waiting or under way. */
  backlog: Backlog;
  /** How long requests take; undefined before the first has ended. */
  latency: Latency | undefined;
  /** How the last request that failed did so; undefined when none has. It stays when delivery works again. */
  lastError: DeliveryError | undefined;
}

export interface Backlog {
  /** Bytes, which `limits.queueBytes` bounds. Of several exporters the sum. */
  bytes: number;
  /**
   * Milliseconds since the record that is first in line, or has been under way for longest, was recorded; 0 when there is
   * none. Pauses that the service asked for count. Of several exporters the largest.
   */
  oldestMs: number;
}

/**
 * Milliseconds from sending a request to the end of its answer, or to its failure: of the latest 500 requests of each
 * exporter, all of them together. A percentile is one of these durations, that of nearest rank: `p99Ms` of fewer than a hundred
 * requests is the longest.
 */
export interface Latency {
  p50Ms: number;
  p99Ms: number;
}

/** A request that was refused or got no answer. Of several exporters the latest. */
export interface DeliveryError {
  /** ISO 8601, UTC. */
  at: string;
  /** The status, or what broke the connection; never a key, a payload, or the user of a URL. */
  message: string;
}

let read: (() => Stats) | undefined;

/** Called by the composition root when it is loaded: `reader` sums over the exporters of the process. */
export function registerStats(reader: () => Stats): void {
  read = reader;
}

/** What `stats()` gives; undefined where nobody counts. */
export function currentStats(): Stats | undefined {
  return read?.();
}

/**
 * What is published on channels of `node:diagnostics_channel`, by the name of the channel. Nothing is made or published where
 * nobody has subscribed. Subscribers are called on the spot; what they throw is an uncaught exception, as on every channel.
 */
export interface ChannelMessages {
  /** A request that carried runs has ended, with an answer or without. */
  'runspan:request:end': RequestMessage;
  /** A run was given up. */
  'runspan:run:dropped': DropMessage;
  /** Requests have begun to fail. */
  'runspan:delivery:outage': OutageMessage;
  /** The first runs were accepted after an outage. */
  'runspan:delivery:recovery': RecoveryMessage;
}

export interface RequestMessage {
  /** Origin of the service. */
  readonly endpoint: string;
  /** `multipart` carries a batch, `simple` the start or the end of one run. */
  readonly kind: 'multipart' | 'simple';
  /** The status that it was answered with; undefined when no answer came. */
  readonly status: number | undefined;
  /** What the failure was; undefined when the service has accepted the request. */
  readonly error: string | undefined;
  /** Milliseconds from sending it to the end of the answer, or to the failure. */
  readonly durationMs: number;
  /** Records in it. */
  readonly runs: number;
  /** Bytes of its body, as they were sent. */
  readonly bytes: number;
}

export interface DropMessage {
  /** Origin of the service. */
  readonly endpoint: string;
  readonly reason: DropReason;
  readonly run: DroppedRun;
}

export interface OutageMessage {
  /** Origin of the service. */
  readonly endpoint: string;
  readonly error: string;
}

export interface RecoveryMessage {
  /** Origin of the service. */
  readonly endpoint: string;
  /** Milliseconds since the outage was published. */
  readonly durationMs: number;
}

// Held here: a channel that nobody holds is collected, and its subscribers with it.
const channels: { readonly [Name in keyof ChannelMessages]: Channel } = {
  'runspan:request:end': channel('runspan:request:end'),
  'runspan:run:dropped': channel('runspan:run:dropped'),
  'runspan:delivery:outage': channel('runspan:delivery:outage'),
  'runspan:delivery:recovery': channel('runspan:delivery:recovery'),
};

let isPublishing = false;

/** Publishes what `messageOf` gives, which is not called where nobody would hear it. */
export function publish<Name extends keyof ChannelMessages>(name: Name, messageOf: () => ChannelMessages[Name]): void {
  // A subscriber whose own runs are dropped would be told of them from within itself, without end.
  if (isPublishing || !channels[name].hasSubscribers) return;
  isPublishing = true;
  try {
    channels[name].publish(messageOf());
  } finally {
    isPublishing = false;
  }
}

/** Calls the listener with every message until the function given back is called. */
export function subscribe<Name extends keyof ChannelMessages>(
  name: Name,
  listener: (message: ChannelMessages[Name]) => void,
): () => void {
  const onMessage = (message: unknown): void => listener(message as ChannelMessages[Name]);
  channels[name].subscribe(onMessage);
  return () => void channels[name].unsubscribe(onMessage);
}
