import { onTestFinished } from 'vitest';
import { type ChannelMessages, subscribe } from '#src/run/stats.ts';

/** Returns the messages that the channel publishes until the test has finished. */
export function published<Name extends keyof ChannelMessages>(name: Name): ChannelMessages[Name][] {
  const messages: ChannelMessages[Name][] = [];
  onTestFinished(subscribe(name, (message) => messages.push(message)));
  return messages;
}
