import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { visible } from '../elements/visible-text.ts';
import type { FoundDocument } from './documents.ts';
import { JsonTree } from './json-tree.tsx';
import { Reading } from './reading.tsx';

const PAGE = 20;

/** What a retriever found, in its order. */
export function DocumentList({ documents }: { documents: readonly FoundDocument[] }): JSX.Element {
  const [count, setCount] = useState(PAGE);
  if (documents.length === 0) return <p class="note">Nothing was found.</p>;
  return (
    <ol class="documents">
      {documents.slice(0, count).map(({ title, text, score, metadata }, index) => (
        <li key={index}>
          <p class="part-head">
            <strong>{title === undefined ? `Document ${index + 1}` : visible(title)}</strong>
            {score !== undefined && <span class="note"> score {Number(score.toPrecision(4))}</span>}
          </p>
          <Reading text={text} />
          {metadata !== undefined && (
            <details>
              <summary>metadata</summary>
              <JsonTree value={metadata} />
            </details>
          )}
        </li>
      ))}
      {documents.length > count && (
        <li>
          <button type="button" class="more" onClick={() => setCount(count + PAGE)}>
            show more of {documents.length.toLocaleString('en')}
          </button>
        </li>
      )}
    </ol>
  );
}
