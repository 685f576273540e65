import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { bytes } from './figures.ts';
import { piecesOf } from './visible-text.ts';

/** Characters that are shown of a long text, and how many more each time that more is asked for. */
const SHOWN = 4_096;
const MORE = 65_536;

/** Text of a payload: as it is, with what is hidden in it made visible. */
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
  return (
    <>
      {children === undefined ? <Text value={shown} /> : children(shown)}
      {shown.length < value.length && (
        <button type="button" class="more" onClick={() => setLength(length + MORE)}>
          show more ({bytes(value.length - shown.length)} left)
        </button>
      )}
    </>
  );
}
