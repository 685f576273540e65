import { diagnostics } from '../../base/diagnostics.ts';
import { clearTimer, setTimer } from '../../platform/timers.ts';
import { type Feedback, hasContent } from '../domain/feedback.ts';
import { mapInTurns } from '../domain/in-turns.ts';
import type { Scope } from '../domain/query/query.ts';
import type { Store } from './store.ts';

/** Maximum time to wait for the run of a feedback. Clients send runs in batches, so the run may arrive later. */
const ARRIVAL_MS = 1_000;

/** Returns whether the feedback was stored, because its run is stored or arrives within one second. */
export async function addFeedback(store: Store, scope: Scope, feedback: Feedback): Promise<boolean> {
  let notify = (): void => {};
  let isOver = false;
  // Without the project, because a run has none until it is visible.
  const unsubscribe = store.subscribe({ tenant: scope.tenant }, () => notify());
  const timer = setTimer(() => {
    isOver = true;
    notify();
  }, ARRIVAL_MS);
  try {
    for (;;) {
      // Start listening before calling the store, so that no change is missed.
      const change = new Promise<void>((resolve) => {
        notify = resolve;
      });
      if (await store.addFeedback(scope, feedback)) return true;
      if (isOver) return false;
      await change;
    }
  } finally {
    clearTimer(timer);
    unsubscribe();
  }
}

/** Stores the feedback that has content, and returns its number. Logs and leaves out feedback whose run is missing. */
export async function addFeedbackBatch(store: Store, scope: Scope, batch: readonly Feedback[]): Promise<number> {
  const feedback = batch.filter(hasContent);
  const firstTries = await mapInTurns(feedback, (one) => store.addFeedback(scope, one));
  const isKnown = await Promise.all(firstTries);
  const early = feedback.filter((_, index) => !isKnown[index]);
  const isStored = await Promise.all(early.map((one) => addFeedback(store, scope, one)));
  const missing = early.filter((_, index) => !isStored[index]);
  if (missing[0] !== undefined) {
    const others = missing.length === 1 ? '' : ` and ${missing.length - 1} more`;
    diagnostics.warn(`dropped feedback on runs that are not stored: ${missing[0].run_id}${others}`);
  }
  return feedback.length - missing.length;
}
