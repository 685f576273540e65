import { type Signal, signal } from '@preact/signals';
import type { JSX } from 'preact';
import { lag } from '../data/api.ts';
import { Button } from '../elements/controls.tsx';

const tasks: Signal<ReadonlyMap<number, { readonly text: string; readonly cancel: () => void }>> = signal(new Map());

/** Message about the result of the last import or deletion, shown for a few seconds. */
const notice: Signal<string | undefined> = signal(undefined);

const NOTICE_MS = 6_000;

/** Shows a task with a button that cancels it, or changes its text. */
export function showTask(id: number, text: string, cancel: () => void): void {
  tasks.value = new Map(tasks.value).set(id, { text, cancel });
}

/** Removes a task, and shows its result for a few seconds. */
export function endTask(id: number, result: string): void {
  tasks.value = new Map([...tasks.value].filter(([key]) => key !== id));
  showNotice(result);
}

export function showNotice(text: string): void {
  notice.value = text;
  setTimeout(() => {
    if (notice.value === text) notice.value = undefined;
  }, NOTICE_MS);
}

export function Tasks(): JSX.Element {
  return (
    <div class="tasks">
      {tasks.value.size > 0 && (
        <section aria-label="Running imports">
          {[...tasks.value].map(([id, { text, cancel }]) => (
            <p key={id} class="line popup">
              <span>{text}</span>
              <span class="space" />
              <Button text="Cancel" onClick={cancel} />
            </p>
          ))}
        </section>
      )}
      {lag.value !== undefined && <p class="notice popup">{lag.value}</p>}
      <p class="notice popup" role="status">
        {notice.value}
      </p>
    </div>
  );
}
