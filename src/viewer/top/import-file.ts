import { type Signal, signal } from '@preact/signals';
import { api, problemOf } from '../data/api.ts';
import { plural } from '../elements/figures.ts';

/** Message about the result of the last import or deletion, shown for a few seconds. */
export const notice: Signal<string | undefined> = signal(undefined);

const NOTICE_MS = 6_000;

/** Opens a file dialog and imports the traces in the selected file. */
export function importFile(): void {
  const input = document.createElement('input');
  input.type = 'file';
  input.accept = '.json,.jsonl,.ndjson,application/json';
  input.addEventListener('change', async () => {
    const [file] = input.files ?? [];
    if (file === undefined) return;
    try {
      const { traces, runs } = await api.importTraces(file);
      showNotice(`Imported ${plural(traces, 'trace')} with ${plural(runs, 'run')} from ${file.name}`);
    } catch (error) {
      showNotice(problemOf(error) ?? 'The import was aborted');
    }
  });
  input.click();
}

export function showNotice(text: string): void {
  notice.value = text;
  setTimeout(() => {
    if (notice.value === text) notice.value = undefined;
  }, NOTICE_MS);
}
