/** Where the focus goes when what had it is gone with what it did. A touch screen would put its keyboard before the answer. */
export function focusComposer(): void {
  if (matchMedia('(hover: hover)').matches) composer()?.focus();
}

/** Whether the focus is where a message is written, and nothing is: it may be led to what has come up, and nobody types into the wrong place. */
export function isComposerIdle(): boolean {
  const area = composer();
  return area !== null && area === document.activeElement && area.value === '';
}

function composer(): HTMLTextAreaElement | null {
  return document.querySelector('.composer textarea');
}
