import { type Channel, channel } from 'node:diagnostics_channel';
import type { DroppedRun, DropReason } from './stats.ts';

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
