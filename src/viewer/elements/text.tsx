import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { Button } from './controls.tsx';
import { bytes } from './figures.ts';
import { piecesOf } from './visible-text.ts';

/** Number of characters of a long text to show at first. Each click on "Show more" adds the same number. */
const SHOWN = 4_096;
const MORE = 65_536;

/** Shows a text with hidden characters escaped and marked. */
export function Text({ value }: { value: string }): JSX.Element {
  return (
    <>
      {piecesOf(value).map(({ text, isHidden }, index) =>
        isHidden ? (
          <span key={index} class="hidden-character" title="Hidden character">
            {text}
          </span>
        ) : (
          text
        ),
      )}
    </>
  );
}

/** Shows the beginning of a long text, with a button that shows more. */
export function LongText(props: { value: string; children?: (shown: string) => JSX.Element }): JSX.Element {
  const { value, children } = props;
  const [length, setLength] = useState(SHOWN);
  const shown = value.length <= length ? value : value.slice(0, length);
  return (
    <>
      {children === undefined ? <Text value={shown} /> : children(shown)}
      {shown.length < value.length && (
        <Button
          text={`Show more (${bytes(value.length - shown.length)} left)`}
          class="more"
          onClick={() => setLength(length + MORE)}
        />
      )}
    </>
  );
}
