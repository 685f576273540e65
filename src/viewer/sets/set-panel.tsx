import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { api, type Examples, problemOf, readSets, sets } from '../data/api.ts';
import { Button, Command } from '../elements/controls.tsx';
import { plural } from '../elements/figures.ts';
import { visibleText } from '../elements/visible-text.ts';

/** Buttons and a form that add examples to a set. Then shows the file, and the command that tests the set. */
export default function SetPanel({ examples }: { examples: Examples }): JSX.Element {
  const result = useSignal<{ readonly set?: string; readonly text?: string | undefined }>({});
  useEffect(() => void readSets(), []);
  const add = async (name: string): Promise<void> => {
    try {
      result.value = { set: name, text: resultText(await api.addToSet(name, examples)) };
    } catch (error) {
      result.value = { text: problemOf(error) };
    }
    await readSets();
  };
  const { set, text } = result.value;
  return (
    <>
      <div class="menu-list">
        {sets.value?.map(({ name, examples: size }) => {
          const text = `${visibleText(name)}: ${plural(size, 'example')}`;
          return <Button key={name} class="tab" text={text} onClick={() => void add(name)} />;
        })}
      </div>
      <NewSet add={add} />
      <p role="status" class={set === undefined ? 'bad' : ''}>
        {text}
      </p>
      {set !== undefined && <Command text={`npx runspan test --set ${set}`} />}
    </>
  );
}

function NewSet({ add }: { add: (set: string) => Promise<void> }): JSX.Element {
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    void add(`${new FormData(event.currentTarget as HTMLFormElement).get('name')}`);
  };
  return (
    <form class="line" onSubmit={submit}>
      <input
        name="name"
        aria-label="Name of a new set"
        placeholder="Name of a new set"
        title="Letters, digits, dots, hyphens and underscores"
        required
        pattern="(?!\.|.*\.\.)[A-Za-z0-9._\-]{1,64}"
      />
      <Button text="Add" type="submit" />
    </form>
  );
}

function resultText({ added, kept, file }: { added: number; kept: number; file: string }): string {
  if (kept === 0) return `${added} added to ${visibleText(file)}`;
  return `${added} added, ${kept} ${kept === 1 ? 'was' : 'were'} already in ${visibleText(file)}`;
}
