import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import type { Feedback } from '../../receiver/feedback/feedback.ts';
import type { RunDetails } from '../../receiver/store/run-view.ts';
import { api, problemOf } from '../data/api.ts';
import { exact } from '../elements/figures.ts';
import { Icon } from '../elements/icon.tsx';
import { LongText } from '../elements/text.tsx';
import { visible } from '../elements/visible-text.ts';
import { JsonTree } from '../payload/json-tree.tsx';

/** The key of what is given here, unless the reader names another. */
const KEY = 'rating';

/** What is said of a run, and what the reader says. */
export function FeedbackSection({ run, reload }: { run: RunDetails; reload: () => void }): JSX.Element {
  const problem = useSignal<string | undefined>(undefined);
  const give = async (said: Partial<Feedback>): Promise<boolean> => {
    try {
      await api.giveFeedback({ run_id: run.id, ...said });
      problem.value = undefined;
      reload();
      return true;
    } catch (error) {
      problem.value = problemOf(error);
      return false;
    }
  };
  const given = run.feedback ?? [];
  return (
    <section class="section" aria-label="Feedback">
      <header>
        <h3>Feedback</h3>
        {given.length > 0 && <span class="note">{given.length}</span>}
        <span class="space" />
        <button
          type="button"
          class="button quiet"
          aria-label="Good"
          title="Good: score 1"
          onClick={() => give({ key: KEY, score: 1 })}
        >
          <Icon name="like" />
        </button>
        <button
          type="button"
          class="button quiet"
          aria-label="Bad"
          title="Bad: score −1"
          onClick={() => give({ key: KEY, score: -1 })}
        >
          <Icon name="dislike" />
        </button>
      </header>
      {given.length > 0 && (
        <ul class="feedback">
          {given.map((one) => (
            <GivenFeedback key={one.id} feedback={one} />
          ))}
        </ul>
      )}
      <details>
        <summary>Say more</summary>
        <FeedbackForm give={give} />
      </details>
      {problem.value !== undefined && (
        <p class="problem" role="alert">
          {problem.value}
        </p>
      )}
    </section>
  );
}

function GivenFeedback({ feedback }: { feedback: Feedback }): JSX.Element {
  const { key, score, value, comment, correction, created_at } = feedback;
  const isTakenBack = [score, value, comment, correction].every((said) => said === undefined);
  return (
    <li>
      <strong>{visible(key)}</strong>
      {score !== undefined && <span class="chip">{`${score}`}</span>}
      {value !== undefined &&
        (typeof value === 'object' ? <JsonTree value={value} /> : <span class="chip">{visible(`${value}`)}</span>)}
      {isTakenBack && <span class="note"> taken back</span>}
      <span class="note"> {exact(created_at)}</span>
      {comment !== undefined && (
        <p class="plain">
          <LongText value={comment} />
        </p>
      )}
      {correction !== undefined && (
        <div>
          <span class="note">correction</span> <JsonTree value={correction} />
        </div>
      )}
    </li>
  );
}

function FeedbackForm({ give }: { give: (said: Partial<Feedback>) => Promise<boolean> }): JSX.Element {
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const said = new FormData(form);
    const text = (name: string): string => `${said.get(name) ?? ''}`.trim();
    const isGiven = await give({
      key: text('key'),
      ...(text('score') === '' ? {} : { score: Number(text('score')) }),
      ...(text('value') === '' ? {} : { value: text('value') }),
      ...(text('comment') === '' ? {} : { comment: text('comment') }),
      ...(text('correction') === '' ? {} : { correction: text('correction') }),
    });
    if (isGiven) form.reset();
  };
  return (
    <form class="feedback-form" onSubmit={(event) => void submit(event)}>
      <label>
        Key <input name="key" required maxLength={180} defaultValue={KEY} />
      </label>
      <label>
        Score <input name="score" type="number" step="any" />
      </label>
      <label>
        Value <input name="value" />
      </label>
      <label class="wide">
        Comment <textarea name="comment" rows={2} />
      </label>
      <label class="wide">
        Correction <textarea name="correction" rows={2} />
      </label>
      <button type="submit" class="button">
        Give feedback
      </button>
    </form>
  );
}
