import { currentThread } from './current-thread.ts';
import { closeHistory, isDrawerOpen, isHistoryOpen } from './layout.ts';

/** Escape closes what stands before the conversation, else it stops the agent. A dialog closes by itself. */
export function listenToKeys(): void {
  addEventListener('keydown', ({ key, isComposing }) => {
    // In some scripts Escape takes back the character that is being composed.
    if (key !== 'Escape' || isComposing || document.querySelector('dialog[open]') !== null) return;
    if (isDrawerOpen.value) {
      isDrawerOpen.value = false;
      document.querySelector<HTMLElement>('[aria-controls=threads]')?.focus();
    } else if (isHistoryOpen.value && document.activeElement?.closest('#history') != null) closeHistory();
    else void currentThread.value.stop();
  });
}
