import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { visible } from '../elements/visible-text.ts';

export function Picture({ source, alt }: { source: string; alt: string }): JSX.Element {
  const [isBroken, setBroken] = useState(false);
  if (isBroken) return <span class="box picture-problem small">{visible(alt)}: the image cannot be shown</span>;
  return <img class="picture" src={source} alt={visible(alt)} loading="lazy" onError={() => setBroken(true)} />;
}
