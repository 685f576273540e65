import { api, problemOf } from '../data/api.ts';
import { bytes, plural } from '../elements/figures.ts';
import { endTask, showTask } from './tasks.tsx';

export function importFile(): void {
  const input = document.createElement('input');
  input.type = 'file';
  input.accept = '.json,.jsonl,.ndjson,application/json';
  input.addEventListener('change', () => {
    const [file] = input.files ?? [];
    if (file !== undefined) void importTraces(file);
  });
  input.click();
}

async function importTraces(file: File): Promise<void> {
  const id = Date.now();
  const cancelled = new AbortController();
  const show = (sentBytes: number): void => {
    const text = `Importing ${file.name}: sent ${bytes(sentBytes)} of ${bytes(file.size)}`;
    showTask(id, text, () => cancelled.abort());
  };
  show(0);
  try {
    const { traces, runs } = await api.importTraces(file, show, cancelled.signal);
    endTask(id, `Imported ${plural(traces, 'trace')} with ${plural(runs, 'run')} from ${file.name}`);
  } catch (error) {
    endTask(id, problemOf(error) ?? `Cancelled. Runs of ${file.name} that were stored stay`);
  }
}
