/** Where the focus goes when what had it is gone with what it did. A touch screen would put its keyboard before the answer. */
export function focusComposer(): void {
  if (matchMedia('(hover: hover)').matches) document.querySelector<HTMLElement>('.composer textarea')?.focus();
}
