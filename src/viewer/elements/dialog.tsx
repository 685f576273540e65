import { type Signal, signal } from '@preact/signals';
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { Button } from './controls.tsx';
import { useKeys } from './keys.ts';

const open: Signal<JSX.Element | undefined> = signal(undefined);

export function openDialog(dialog: JSX.Element): void {
  open.value = dialog;
}

export function closeDialog(): void {
  open.value = undefined;
}

export function OpenDialog(): JSX.Element | null {
  return open.value ?? null;
}

/** A modal dialog. Escape closes it. */
export function Dialog(props: { title: string; closeLabel: string; children: ComponentChildren }): JSX.Element {
  const { title, closeLabel, children } = props;
  const dialog = useRef<HTMLDialogElement>(null);
  useKeys({ Escape: closeDialog, '?': closeDialog }, true);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="dialog popup" aria-label={title} onClose={closeDialog}>
      <header class="line">
        <h2 class="clip">{title}</h2>
        <span class="space" />
        <Button text={closeLabel} class="button quiet" onClick={closeDialog} />
      </header>
      {children}
    </dialog>
  );
}
