import { useEffect, useState } from 'preact/hooks';
import { problemOf } from './api.ts';
import { onChanges } from './changes.ts';

/** What has been asked for: nothing yet, the value, or why there is none. */
export interface Loaded<Value> {
  readonly value?: Value;
  readonly problem?: string;
}

/** Loads again when `key` changes, and what was asked for before is given up. Undefined loads nothing. */
export function useLoaded<Value>(
  key: string | undefined,
  load: (signal: AbortSignal) => Promise<Value>,
): Loaded<Value> {
  const [loaded, setLoaded] = useState<Loaded<Value> & { key?: string }>({});
  useEffect(() => {
    if (key === undefined) return;
    const asking = new AbortController();
    let hasFailed = false;
    const ask = (): void => {
      hasFailed = false;
      load(asking.signal).then(
        (value) => asking.signal.aborted || setLoaded({ key, value }),
        (error: unknown) => {
          const problem = problemOf(error);
          if (problem === undefined || asking.signal.aborted) return;
          hasFailed = true;
          setLoaded({ key, problem });
        },
      );
    };
    ask();
    // The receiver may be back.
    const unsubscribe = onChanges((traceIds) => {
      if (traceIds === undefined && hasFailed) ask();
    });
    return () => {
      unsubscribe();
      asking.abort();
    };
  }, [key]);
  return loaded.key === key ? loaded : {};
}
