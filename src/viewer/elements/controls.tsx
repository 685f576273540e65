import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { Icon } from './icon.tsx';

const TOLD_MS = 1_500;

/** Copies a text, which is made only then, and says that it has. */
export function CopyButton({ text, label, word }: { text: () => string; label: string; word?: string }): JSX.Element {
  const [said, setSaid] = useState<string>();
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text());
      setSaid('Copied');
    } catch {
      setSaid('Not allowed to copy');
    }
    setTimeout(() => setSaid(undefined), TOLD_MS);
  };
  return (
    <button type="button" class="copy" title={label} aria-label={label} onClick={copy}>
      {said === undefined ? <Icon name="copy" /> : <span role="status">{said}</span>}
      {said === undefined && word}
    </button>
  );
}
