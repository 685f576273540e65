import { isPrefixMatch } from '@langchain/langgraph/stream';
import type { NewEvent } from '../storage/session-store.ts';

/** Which of the events of a thread somebody wants. */
export interface Subscription {
  /** All, where it is missing. `custom` is for every `custom:<name>` as well. */
  readonly channels?: readonly string[] | undefined;
  /** Those within one of these; one without a colon is for all of that name. */
  readonly namespaces?: readonly (readonly string[])[] | null | undefined;
  /** How far below them. */
  readonly depth?: number | null | undefined;
  /** Those with a higher number. */
  readonly since?: number | null | undefined;
  /** Of states after the first, only what differs from the one before. */
  readonly values?: 'changes' | null | undefined;
}

/** Whether an event is one of those that a filter takes. */
export function isWanted(
  { channel, namespace }: Pick<NewEvent, 'channel' | 'namespace'>,
  { channels, namespaces, depth }: Subscription,
): boolean {
  const isOnChannel =
    channels?.some((wanted) => wanted === channel || (wanted === 'custom' && channel.startsWith('custom:'))) ?? true;
  if (!isOnChannel || namespaces === null || namespaces === undefined || namespaces.length === 0) return isOnChannel;
  return namespaces.some(
    (prefix) =>
      isPrefixMatch([...namespace], [...prefix]) &&
      (depth === null || depth === undefined || namespace.length - prefix.length <= depth),
  );
}
