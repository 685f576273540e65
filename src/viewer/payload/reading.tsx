import { type Signal, signal } from '@preact/signals';
import type { ComponentType, JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { isMarkdown } from '../data/preferences.ts';
import { LongText, Text } from '../elements/text.tsx';
import { binaryOf } from './binary-text.ts';
import { BinaryChip } from './json-tree.tsx';

/** The Markdown component, loaded with the first text that needs it. */
const markdown: Signal<ComponentType<{ text: string }> | undefined> = signal(undefined);

/** Text of a payload, as Markdown or as plain text. */
export function Reading({ text }: { text: string }): JSX.Element {
  useEffect(() => {
    if (!isMarkdown.value || markdown.value !== undefined) return;
    void import('./markdown.tsx').then((module) => {
      markdown.value = module.default;
    });
  }, [isMarkdown.value]);
  if (binaryOf(text) !== undefined) return <BinaryChip text={text} />;
  const Markdown = isMarkdown.value ? markdown.value : undefined;
  return (
    <div class="reading">
      <LongText value={text}>
        {(shown) =>
          Markdown === undefined ? (
            <div class="plain">
              <Text value={shown} />
            </div>
          ) : (
            <Markdown text={shown} />
          )
        }
      </LongText>
    </div>
  );
}
