import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useRef } from 'preact/hooks';
import { problemOf } from './api.ts';
import { Icon } from './icon.tsx';
import { type Rating, rate, ratingOf, type Score } from './ratings.ts';

/** Thumbs for an answer, and a comment beside them. */
export function RatingView({ threadId, runId }: { threadId: string; runId: string }): JSX.Element {
  const { score, comment } = ratingOf(runId).value;
  const isCommenting = useSignal(false);
  const thanks = useSignal('');
  const problem = useSignal<string | undefined>(undefined);
  // Of two that are under way the one that was said first could be the one that stays.
  const isSending = useRef(false);
  const give = async (rating: Rating, isForComment: boolean, said: string): Promise<void> => {
    if (isSending.current) return;
    isSending.current = true;
    try {
      await rate(threadId, runId, rating);
      isCommenting.value = isForComment;
      thanks.value = said;
      problem.value = undefined;
    } catch (error) {
      problem.value = problemOf(error);
    }
    isSending.current = false;
  };
  const press = (pressed: Score): Promise<void> =>
    pressed === score
      ? give({}, false, 'Taken back.')
      : give({ score: pressed, ...(comment && { comment }) }, true, 'Thank you.');
  return (
    <>
      {([1, -1] as const).map((one) => (
        <button
          key={one}
          type="button"
          class="button quiet"
          aria-label={one === 1 ? 'Good answer' : 'Bad answer'}
          aria-pressed={score === one}
          title={score === one ? 'Press again to take it back' : undefined}
          onClick={() => void press(one)}
        >
          <Icon name={one === 1 ? 'like' : 'dislike'} />
        </button>
      ))}
      <span class="note" role="status">
        {thanks.value}
      </span>
      {isCommenting.value && score !== undefined && (
        <CommentForm
          comment={comment}
          send={(said) =>
            void give({ score, ...(said && { comment: said }) }, false, said && 'Thank you for the comment.')
          }
          close={() => {
            isCommenting.value = false;
          }}
        />
      )}
      {problem.value !== undefined && (
        <span class="problem" role="alert">
          {problem.value}
        </span>
      )}
    </>
  );
}

function CommentForm({
  comment = '',
  send,
  close,
}: {
  comment?: string | undefined;
  send: (comment: string) => void;
  close: () => void;
}): JSX.Element {
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const said = `${new FormData(event.currentTarget as HTMLFormElement).get('comment') ?? ''}`.trim();
    if (said === comment) close();
    else send(said);
  };
  return (
    <form class="comment" onSubmit={submit}>
      <label>
        <span class="unseen">Comment on the answer</span>
        <input name="comment" dir="auto" placeholder="Why? (optional)" maxLength={2_000} defaultValue={comment} />
      </label>
      <button type="submit" class="button">
        Send comment
      </button>
    </form>
  );
}
