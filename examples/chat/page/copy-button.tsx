import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { announce } from './announcer.tsx';
import { Icon } from './icon.tsx';

const DONE_MS = 2_000;

/** A button that copies a text to the clipboard. */
export function CopyButton({ text, label }: { text: string; label: string }): JSX.Element {
  const status = useSignal<'idle' | 'complete' | 'failed'>('idle');
  const copy = async (): Promise<void> => {
    // On pages that are loaded over plain HTTP, there is no clipboard.
    const isCopied = await (navigator.clipboard?.writeText(text) ?? Promise.reject(new Error())).then(
      () => true,
      () => false,
    );
    status.value = isCopied ? 'complete' : 'failed';
    announce(isCopied ? 'Copied.' : 'The browser does not allow copying.');
    setTimeout(() => {
      status.value = 'idle';
    }, DONE_MS);
  };
  return (
    <button type="button" class="button quiet copy" aria-label={label} title={label} onClick={() => void copy()}>
      <Icon name={status.value === 'idle' ? 'copy' : status.value} />
    </button>
  );
}
