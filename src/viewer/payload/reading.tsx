import { type Signal, signal } from '@preact/signals';
import type { ComponentType, JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { keep, kept } from '../data/preferences.ts';
import { LongText, Text } from '../elements/text.tsx';
import { binaryOf } from './binary-text.ts';
import { BinaryChip } from './json-tree.tsx';

const KEY = 'runspan.markdown';

/** Whether text is laid out as the Markdown that it may be, or shown as it is. */
export const isMarkdown: Signal<boolean> = signal(kept(KEY) !== 'off');
isMarkdown.subscribe((value) => keep(KEY, value ? 'on' : 'off'));

/** Loaded with the first text that is laid out. */
const markdown: Signal<ComponentType<{ text: string }> | undefined> = signal(undefined);
let isAsked = false;

/** Text of a payload, for reading. */
export function Reading({ text }: { text: string }): JSX.Element {
  useEffect(() => {
    if (!isMarkdown.value || isAsked) return;
    isAsked = true;
    void import('./markdown.tsx').then((module) => {
      markdown.value = module.default;
    });
  }, [isMarkdown.value]);
  if (binaryOf(text) !== undefined) return <BinaryChip text={text} />;
  const Markdown = isMarkdown.value ? markdown.value : undefined;
  return (
    <div class="reading">
      <LongText value={text}>
        {(shown) => (Markdown === undefined ? <Plain text={shown} /> : <Markdown text={shown} />)}
      </LongText>
    </div>
  );
}

function Plain({ text }: { text: string }): JSX.Element {
  return (
    <div class="plain">
      <Text value={text} />
    </div>
  );
}
