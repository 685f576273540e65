import type { SavedData } from '../../receiver/domain/run-view.ts';

/** A trace in an HTML file, which answers the page's requests in place of a receiver. */
export interface SavedTrace extends Omit<SavedData, 'responses'> {
  readonly responses: ReadonlyMap<string, unknown>;
  search(text: string): ReadonlySet<string>;
}

/** The saved trace that the page shows. Undefined on a receiver's page. */
export let saved: SavedTrace | undefined;

/** Call this function before the page is rendered. */
export function openSaved(trace: SavedTrace): void {
  saved = trace;
}
