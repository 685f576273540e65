import type { JSX } from 'preact';
import { isMarkdown } from '../data/preferences.ts';
import { lazy } from '../elements/lazy.tsx';
import { LongText, Text } from '../elements/text.tsx';
import { binaryOf } from './binary-text.ts';
import { BinaryChip } from './json-tree.tsx';

const Markdown = lazy(() => import('./markdown.tsx'), PlainText);

/** Text from a payload, rendered as Markdown or as plain text. */
export function Reading({ text }: { text: string }): JSX.Element {
  if (binaryOf(text) !== undefined) return <BinaryChip text={text} />;
  const Shown = isMarkdown.value ? Markdown : PlainText;
  return (
    <div class="reading">
      <LongText value={text}>{(shown) => <Shown text={shown} />}</LongText>
    </div>
  );
}

function PlainText({ text }: { text: string }): JSX.Element {
  return (
    <div class="plain">
      <Text value={text} />
    </div>
  );
}
