import type { RunPlace } from './sink.ts';

/** Returns the path of a run's page at a receiver. If the run is not the first of its trace, the page selects it. */
export function pagePath({ id, traceId }: Pick<RunPlace, 'id' | 'traceId'>): string {
  return `/?trace=${traceId}${id === traceId ? '' : `&run=${id}`}`;
}
