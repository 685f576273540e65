import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { visible } from '../elements/visible-text.ts';

/** An image, or the reason why the browser cannot show it. */
export function Picture({ source, alt }: { source: string; alt: string }): JSX.Element {
  const [reason, setReason] = useState<string>();
  if (reason === undefined) {
    const explain = async (): Promise<void> => setReason(await reasonOf(source));
    return <img class="picture" src={source} alt={visible(alt)} loading="lazy" onError={() => void explain()} />;
  }
  return (
    <span class="box picture-problem small">
      {visible(alt)}: {reason}
    </span>
  );
}

/** Returns why an image cannot be shown. Images from the receiver are requested again, because `error` has no reason. */
async function reasonOf(source: string): Promise<string> {
  const invalid = 'the data is not a valid image';
  if (source.startsWith('data:')) return invalid;
  try {
    const { ok, status } = await fetch(source);
    return ok ? invalid : `the receiver answered with status ${status}`;
  } catch {
    return 'the receiver cannot be reached';
  }
}
