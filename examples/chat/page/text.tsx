import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { piecesOf } from './visible-text.ts';

/** Characters that are shown of a long text, and how many more each time that more is asked for. */
const SHOWN = 16_384;
const MORE = 65_536;

/** Text of others: as it is, with what is hidden in it made visible. */
export function Text({ value }: { value: string }): JSX.Element {
  return (
    <>
      {piecesOf(value).map(({ text, isHidden }, index) =>
        isHidden ? (
          <span key={index} class="hidden-character" title="A character that is not seen otherwise">
            {text}
          </span>
        ) : (
          text
        ),
      )}
    </>
  );
}

/** The beginning of a text, and more of it when that is wanted. */
export function LongText({
  value,
  children,
}: {
  value: string;
  children?: (shown: string) => JSX.Element;
}): JSX.Element {
  const [length, setLength] = useState(SHOWN);
  const shown = value.length <= length ? value : value.slice(0, length);
  const left = value.length - shown.length;
  return (
    <>
      {children === undefined ? <Text value={shown} /> : children(shown)}
      {left > 0 && (
        <>
          {' '}
          <button type="button" class="link" onClick={() => setLength(length + MORE)}>
            Show more ({left.toLocaleString('en')} characters left)
          </button>
        </>
      )}
    </>
  );
}
