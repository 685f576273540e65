/** Focuses the text field for the next message. On a touch screen, the keyboard would cover the answer. */
export function focusComposer(): void {
  if (matchMedia('(hover: hover)').matches) composer()?.focus();
}

/** Whether the text field for the next message has the focus and is empty. The focus may then move elsewhere. */
export function isComposerIdle(): boolean {
  const area = composer();
  return area !== null && area === document.activeElement && area.value === '';
}

function composer(): HTMLTextAreaElement | null {
  return document.querySelector('.composer textarea');
}
