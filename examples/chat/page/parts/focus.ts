/** Focuses the text field for the next message, except on touch screens, where the keyboard would cover the answer. */
export function focusComposer(): void {
  if (matchMedia('(hover: hover)').matches) composer()?.focus();
}

/**
 * Whether the text field for the next message has the focus but is empty, so that moving the focus does not disturb the
 * user.
 */
export function isComposerIdle(): boolean {
  const area = composer();
  return area !== null && area === document.activeElement && area.value === '';
}

function composer(): HTMLTextAreaElement | null {
  return document.querySelector('.composer textarea');
}
