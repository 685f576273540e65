import type { NewEvent, StoredEvent } from './session-store.ts';

/** Channel and namespace as JSON: a database takes no NUL in a text, and nobody knows what stands in a name. */
export function headOf({ channel, namespace }: NewEvent): string {
  return JSON.stringify([channel, namespace]);
}

export function storedEvent(seq: number, head: string, body: string): StoredEvent {
  const [channel, namespace] = JSON.parse(head) as [string, string[]];
  return { seq, channel, namespace, body };
}
