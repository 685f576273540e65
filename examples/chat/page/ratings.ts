import { type Signal, signal } from '@preact/signals';
import { ApiError, api } from './api.ts';
import { KeptOfRuns } from './kept-of-runs.ts';
import { fieldsOf, stringOf } from './protocol.ts';

/** What the server has to ask about for thumbs to be an answer. */
export const RATING_KEY = 'user_score';

export type Score = 1 | -1;

/** What a reader says of an answer. Empty where nothing was said, or no longer. */
export interface Rating {
  readonly score?: Score;
  readonly comment?: string;
}

const RUNS_MAX = 200;

/** It is the reader's own, and shown again without asking the service for traces about each answer. */
const keptRatings = new KeptOfRuns('chat.ratings', RUNS_MAX);
const ratings = new Map<string, Signal<Rating>>();
const urls = new Map<string, Promise<string>>();

/** What was said of a run in this browser. */
export function ratingOf(runId: string): Signal<Rating> {
  const known = ratings.get(runId);
  if (known !== undefined) return known;
  const { score, comment } = fieldsOf(keptRatings.get(runId));
  const said = stringOf(comment);
  const made = signal<Rating>(score === 1 || score === -1 ? { score, ...(said && { comment: said }) } : {});
  ratings.set(runId, made);
  return made;
}

/** Says all of it: a run's address takes what is said anew in the place of what was said before. */
export async function rate(threadId: string, runId: string, rating: Rating): Promise<void> {
  try {
    await api.giveFeedback(await urlOf(threadId, runId), rating);
  } catch (error) {
    // Addresses are good for some hours, and pages stay open for longer.
    if (!(error instanceof ApiError && error.status === 410)) throw error;
    urls.delete(runId);
    await api.giveFeedback(await urlOf(threadId, runId), rating);
  }
  ratingOf(runId).value = rating;
  keptRatings.set(runId, rating);
}

function urlOf(threadId: string, runId: string): Promise<string> {
  const known = urls.get(runId);
  if (known !== undefined) return known;
  const asked = api.feedbackUrls(threadId, runId).then((byKey) => {
    const url = byKey[RATING_KEY];
    if (url === undefined) throw new Error(`The server has no address for ${RATING_KEY}.`);
    return url;
  });
  urls.set(runId, asked);
  asked.catch(() => urls.delete(runId));
  return asked;
}
