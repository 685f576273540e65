import { type Signal, signal } from '@preact/signals';
import type { JSX } from 'preact';
import { Problem } from '../elements/controls.tsx';
import { lazy } from '../elements/lazy.tsx';

const isHelpOpen: Signal<boolean> = signal(false);

const HelpDialog = lazy(
  () => import('./help-dialog.tsx'),
  ({ problem }) => <Problem text={problem} />,
);

export function openHelp(): void {
  isHelpOpen.value = true;
}

function close(): void {
  isHelpOpen.value = false;
}

/** The help dialog, while it is open. */
export function Help(): JSX.Element | null {
  return isHelpOpen.value ? <HelpDialog close={close} /> : null;
}
