import { type Signal, signal, useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useRef } from 'preact/hooks';
import { FeedbackError, submitFeedback } from 'runspan/clients';
import { feedbackUrls, fieldsOf, problemOf, stringOf } from './client.ts';
import { Icon } from './icon.tsx';
import { recall, remember } from './memory.ts';

/** The feedback key of the thumbs. */
export const RATING_KEY = 'user_score';

/** An empty rating takes an earlier one back. */
interface Rating {
  readonly score?: 1 | -1;
  readonly comment?: string;
}

const STORED = 'chat.ratings';
const STORED_MAX = 200;
const ratings = new Map<string, Signal<Rating>>();
const urls = new Map<string, Promise<string>>();

/** Thumbs for an answer, and a comment. */
export function RatingView({ threadId, runId }: { threadId: string; runId: string }): JSX.Element {
  const { score, comment } = ratingOf(runId).value;
  const isCommenting = useSignal(false);
  const thanks = useSignal('');
  const problem = useSignal<string | undefined>(undefined);
  // Of two requests in progress, the earlier one could be stored last.
  const isSending = useRef(false);
  const send = async (rating: Rating, canComment: boolean, text: string): Promise<void> => {
    if (isSending.current) return;
    isSending.current = true;
    try {
      await rate(threadId, runId, rating);
      isCommenting.value = canComment;
      thanks.value = text;
      problem.value = undefined;
    } catch (error) {
      problem.value = problemOf(error);
    }
    isSending.current = false;
  };
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const text = `${new FormData(event.currentTarget as HTMLFormElement).get('comment') ?? ''}`.trim();
    if (score === undefined || text === (comment ?? '')) isCommenting.value = false;
    else void send({ score, ...(text && { comment: text }) }, false, text && 'Thank you for the comment.');
  };
  return (
    <>
      {([1, -1] as const).map((thumb) => (
        <button
          key={thumb}
          type="button"
          class="button quiet"
          aria-label={thumb === 1 ? 'Good answer' : 'Bad answer'}
          aria-pressed={score === thumb}
          title={score === thumb ? 'Press again to take it back' : undefined}
          onClick={() =>
            void (score === thumb
              ? send({}, false, 'Rating removed.')
              : send({ score: thumb, ...(comment && { comment }) }, true, 'Thank you.'))
          }
        >
          <Icon name={thumb === 1 ? 'like' : 'dislike'} />
        </button>
      ))}
      <span class="note" role="status">
        {thanks.value}
      </span>
      {isCommenting.value && (
        <form class="comment" onSubmit={submit}>
          <label>
            <span class="unseen">Comment on the answer</span>
            <input name="comment" dir="auto" placeholder="Why? (optional)" maxLength={2_000} defaultValue={comment} />
          </label>
          <button type="submit" class="button">
            Send comment
          </button>
        </form>
      )}
      {problem.value !== undefined && (
        <span class="problem" role="alert">
          {problem.value}
        </span>
      )}
    </>
  );
}

/** The rating of a run that was given in this browser. */
function ratingOf(runId: string): Signal<Rating> {
  const known = ratings.get(runId);
  if (known !== undefined) return known;
  const { score, comment } = fieldsOf(stored().find(([id]) => id === runId)?.[1]);
  const text = stringOf(comment);
  const rating = signal<Rating>(score === 1 || score === -1 ? { score, ...(text && { comment: text }) } : {});
  ratings.set(runId, rating);
  return rating;
}

/** Sends a rating, which replaces an earlier one of the run. */
async function rate(threadId: string, runId: string, rating: Rating): Promise<void> {
  try {
    await submitFeedback(await urlOf(threadId, runId), rating);
  } catch (error) {
    // The address expires after some hours, and pages stay open for longer.
    if (!(error instanceof FeedbackError && error.reason === 'expired')) throw error;
    urls.delete(runId);
    await submitFeedback(await urlOf(threadId, runId), rating);
  }
  ratingOf(runId).value = rating;
  const others = stored().filter(([id]) => id !== runId);
  remember(STORED, JSON.stringify([...others, [runId, rating]].slice(-STORED_MAX)));
}

function urlOf(threadId: string, runId: string): Promise<string> {
  const known = urls.get(runId);
  if (known !== undefined) return known;
  const url = feedbackUrls(threadId, runId).then((byKey) => byKey[RATING_KEY] ?? '');
  urls.set(runId, url);
  url.catch(() => urls.delete(runId));
  return url;
}

/** Pairs of a run and its rating. Another program may have stored something else. */
function stored(): [unknown, unknown][] {
  try {
    const pairs: unknown = JSON.parse(recall(STORED) ?? '[]');
    return Array.isArray(pairs) ? pairs.filter((pair) => Array.isArray(pair) && pair.length === 2) : [];
  } catch {
    return [];
  }
}
