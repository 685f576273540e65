import { type Signal, signal } from '@preact/signals';
import { api, problemOf } from '../data/api.ts';
import { plural } from '../elements/figures.ts';

/** What came of the last import, for a moment. */
export const notice: Signal<string | undefined> = signal(undefined);

const NOTICE_MS = 6_000;

/** Asks for a file of exported traces, and hands it to the receiver. */
export function importFile(): void {
  const input = document.createElement('input');
  input.type = 'file';
  input.accept = '.json,application/json';
  input.addEventListener('change', async () => {
    const [file] = input.files ?? [];
    if (file === undefined) return;
    try {
      const { traces, runs } = await api.importTraces(await file.text());
      tell(`${plural(traces, 'trace')} with ${plural(runs, 'run')} read from ${file.name}`);
    } catch (error) {
      tell(problemOf(error) ?? 'The file was not read');
    }
  });
  input.click();
}

function tell(text: string): void {
  notice.value = text;
  setTimeout(() => {
    if (notice.value === text) notice.value = undefined;
  }, NOTICE_MS);
}
