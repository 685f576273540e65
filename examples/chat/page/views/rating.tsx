import { type Signal, useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useRef } from 'preact/hooks';
import { submitFeedback } from 'runspan/clients';
import { IconButton } from '../parts/icon.tsx';
import { storedSignal } from '../parts/memory.ts';
import { Problem } from '../parts/text.tsx';
import { feedbackUrls, problemOf } from '../state/client.ts';

/** Feedback key under which thumbs are stored. */
export const RATING_KEY = 'user_score';

/** A user's rating of an answer. An empty rating is sent when the user removes an earlier one. */
interface Rating {
  readonly score?: 1 | -1;
  readonly comment?: string;
}

const RATINGS_MAX = 200;
/** Ratings that were given in this browser, by run id. */
const ratings: Signal<Readonly<Record<string, Rating>>> = storedSignal('ratings', {});

/** Thumbs and a comment field for an answer. */
export function RatingView({ threadId, runId }: { threadId: string; runId: string }): JSX.Element {
  const { score, comment } = ratings.value[runId] ?? {};
  const isCommenting = useSignal(false);
  const thanks = useSignal('');
  const problem = useSignal<string | undefined>(undefined);
  // Only one request is sent at a time. Otherwise, the server could store an earlier rating after a later one.
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
        <IconButton
          key={thumb}
          icon={thumb === 1 ? 'like' : 'dislike'}
          label={thumb === 1 ? 'Good answer' : 'Bad answer'}
          aria-pressed={score === thumb}
          title={score === thumb ? 'Press again to remove the rating' : undefined}
          onClick={() =>
            void (score === thumb
              ? send({}, false, 'Rating removed.')
              : send({ score: thumb, ...(comment && { comment }) }, true, 'Thank you.'))
          }
        />
      ))}
      <span class="note" role="status">
        {thanks.value}
      </span>
      {isCommenting.value && (
        <form class="comment row" onSubmit={submit}>
          <label>
            <span class="unseen">Comment on the answer</span>
            <input name="comment" dir="auto" placeholder="Why? (optional)" maxLength={2_000} defaultValue={comment} />
          </label>
          <button type="submit" class="button">
            Send comment
          </button>
        </form>
      )}
      <Problem text={problem.value} />
    </>
  );
}

/** Sends a rating, which replaces an earlier rating of the same run. */
async function rate(threadId: string, runId: string, rating: Rating): Promise<void> {
  const { [RATING_KEY]: url = '' } = await feedbackUrls(threadId, runId);
  await submitFeedback(url, rating.score === undefined ? { score: null } : rating);
  const others = Object.entries(ratings.value).filter(([id]) => id !== runId);
  ratings.value = Object.fromEntries([...others, [runId, rating] as const].slice(-RATINGS_MAX));
}
