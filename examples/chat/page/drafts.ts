import { effect, type Signal, signal } from '@preact/signals';
import { forget, keep, kept } from './kept.ts';

/** What stands for the conversation that has not begun. */
export const NEW = '';

const drafts = new Map<string, Signal<string>>();

/** What is written in a conversation and not sent. It stays while others are read, and when the page is loaded anew. */
export function draftOf(threadId: string): Signal<string> {
  const known = drafts.get(threadId);
  if (known !== undefined) return known;
  const key = `draft:${threadId}`;
  const draft = signal(kept(key, 'sessionStorage') ?? '');
  drafts.set(threadId, draft);
  effect(() => (draft.value === '' ? forget(key, 'sessionStorage') : keep(key, draft.value, 'sessionStorage')));
  return draft;
}

/** Takes what is written along to another conversation. */
export function moveDraft(fromId: string, toId: string): void {
  const [from, to] = [draftOf(fromId), draftOf(toId)];
  if (from.value === '') return;
  to.value = from.value;
  from.value = '';
}
