import { type Signal, signal, useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { ApiError, api, problemOf } from './api.ts';
import { Icon } from './icon.tsx';

type Score = 1 | -1;

interface Given {
  readonly score: Score | undefined;
  readonly hasComment: boolean;
}

/** What the server has to ask about for thumbs to be an answer. */
export const RATING_KEY = 'user_score';

/** What was given in this visit, by run. */
const ratings = new Map<string, Signal<Given>>();
/** A run's address takes what is said anew in the place of what was said before. */
const urls = new Map<string, Promise<string>>();

/** Thumbs for an answer, and a comment beside them. */
export function Rating({ threadId, runId }: { threadId: string; runId: string }): JSX.Element {
  const given = ratingOf(runId);
  const isCommenting = useSignal(false);
  const problem = useSignal<string | undefined>(undefined);
  const give = async (score: Score, comment?: string): Promise<void> => {
    try {
      await rate(threadId, runId, { score, ...(comment === undefined ? {} : { comment }) });
      given.value = { score, hasComment: comment !== undefined };
      isCommenting.value = comment === undefined;
      problem.value = undefined;
    } catch (error) {
      problem.value = problemOf(error);
    }
  };
  const { score, hasComment } = given.value;
  return (
    <>
      {([1, -1] as const).map((one) => (
        <button
          key={one}
          type="button"
          class="button quiet"
          aria-label={one === 1 ? 'Good answer' : 'Bad answer'}
          aria-pressed={score === one}
          onClick={() => void give(one)}
        >
          <Icon name={one === 1 ? 'like' : 'dislike'} />
        </button>
      ))}
      <span class="note" role="status">
        {score === undefined ? '' : hasComment ? 'Thank you for the comment.' : 'Thank you.'}
      </span>
      {isCommenting.value && score !== undefined && (
        <CommentForm
          send={(comment) => void give(score, comment)}
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

function CommentForm({ send, close }: { send: (comment: string) => void; close: () => void }): JSX.Element {
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const comment = `${new FormData(event.currentTarget as HTMLFormElement).get('comment') ?? ''}`.trim();
    if (comment === '') close();
    else send(comment);
  };
  return (
    <form class="comment" onSubmit={submit}>
      <label>
        <span class="unseen">Comment on the answer</span>
        <input name="comment" placeholder="Why? (optional)" maxLength={2_000} />
      </label>
      <button type="submit" class="button">
        Send comment
      </button>
    </form>
  );
}

function ratingOf(runId: string): Signal<Given> {
  const known = ratings.get(runId);
  if (known !== undefined) return known;
  const made = signal<Given>({ score: undefined, hasComment: false });
  ratings.set(runId, made);
  return made;
}

async function rate(threadId: string, runId: string, feedback: Parameters<typeof api.giveFeedback>[1]): Promise<void> {
  try {
    await api.giveFeedback(await urlOf(threadId, runId), feedback);
  } catch (error) {
    // Addresses are good for some hours, and pages stay open for longer.
    if (!(error instanceof ApiError && error.status === 410)) throw error;
    urls.delete(runId);
    await api.giveFeedback(await urlOf(threadId, runId), feedback);
  }
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
