import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { visibleText } from '../elements/visible-text.ts';

export function Picture({ source, alt }: { source: string; alt: string }): JSX.Element {
  const [isBroken, setBroken] = useState(false);
  if (isBroken) return <span class="box picture-problem small">{visibleText(alt)}: the image cannot be shown</span>;
  return <img class="picture" src={source} alt={visibleText(alt)} loading="lazy" onError={() => setBroken(true)} />;
}
