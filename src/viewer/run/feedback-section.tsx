import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { type Feedback, NOTE } from '../../receiver/domain/feedback.ts';
import type { RunDetails } from '../../receiver/domain/run-view.ts';
import { api, mayChange, problemOf } from '../data/api.ts';
import { Button, Problem, Section } from '../elements/controls.tsx';
import { exact } from '../elements/figures.ts';
import { LongText } from '../elements/text.tsx';
import { visibleText } from '../elements/visible-text.ts';
import { JsonTree } from '../payload/json-tree.tsx';

const DEFAULT_KEY = 'rating';

/** Submits feedback. Resolves to true if the receiver stored the feedback. */
type Submit = (feedback: Partial<Feedback>) => Promise<boolean>;

/** A section with a run's feedback, and with buttons and a form to add feedback. */
export function FeedbackSection({ run, reload }: { run: RunDetails; reload: () => void }): JSX.Element | null {
  const problem = useSignal<string | undefined>(undefined);
  const submit: Submit = async (feedback) => {
    try {
      await api.giveFeedback({ run_id: run.id, ...feedback });
      problem.value = undefined;
      reload();
      return true;
    } catch (error) {
      problem.value = problemOf(error);
      return false;
    }
  };
  const feedback = run.feedback ?? [];
  if (!mayChange.value && feedback.length === 0) return null;
  const controls = mayChange.value && (
    <>
      <RatingButton label="Good" icon="like" score={1} submit={submit} />
      <RatingButton label="Bad" icon="dislike" score={-1} submit={submit} />
    </>
  );
  const notesFirst = feedback.toSorted((a, b) => Number(b.key === NOTE) - Number(a.key === NOTE));
  return (
    <Section title="Feedback" note={feedback.length || undefined} controls={controls}>
      <ul class="feedback">
        {notesFirst.map((one) => (
          <FeedbackRow key={one.id} feedback={one} />
        ))}
      </ul>
      {mayChange.value && (
        <>
          <form class="line" onSubmit={(event) => void send(event, submit)}>
            <input type="hidden" name="key" value={NOTE} />
            <input class="space" name="comment" aria-label="Note" placeholder="Note" required pattern=".*\S.*" />
            <Button text="Add note" type="submit" />
          </form>
          <details>
            <summary>Add details</summary>
            <FeedbackForm submit={submit} />
          </details>
        </>
      )}
      <Problem text={problem.value} />
    </Section>
  );
}

function RatingButton(props: { label: string; icon: string; score: number; submit: Submit }): JSX.Element {
  const { label, icon, score, submit } = props;
  return (
    <Button
      icon={icon}
      class="button quiet"
      aria-label={label}
      title={`${label}: score ${score}`}
      onClick={() => submit({ key: DEFAULT_KEY, score })}
    />
  );
}

function FeedbackRow({ feedback }: { feedback: Feedback }): JSX.Element {
  const { key, score, value, comment, correction, created_at } = feedback;
  const isWithdrawn = [score, value, comment, correction].every((field) => field === undefined);
  return (
    <li>
      <strong>{visibleText(key)}</strong>
      {score !== undefined && <span class="chip">{`${score}`}</span>}
      {value !== undefined &&
        (typeof value === 'object' ? <JsonTree value={value} /> : <span class="chip">{visibleText(`${value}`)}</span>)}
      {isWithdrawn && <span class="note"> withdrawn</span>}
      <span class="note"> {exact(created_at)}</span>
      {comment !== undefined && (
        <p class="plain">
          <LongText value={comment} />
        </p>
      )}
      {correction !== undefined && (
        <div>
          <span class="note">Correction</span> <JsonTree value={correction} />
        </div>
      )}
    </li>
  );
}

/** Submits the filled fields of a form, and then empties the form. Until then, it submits nothing again. */
async function send(event: SubmitEvent, submit: Submit): Promise<void> {
  event.preventDefault();
  const form = event.currentTarget as HTMLFormElement;
  if (form.ariaBusy !== null) return;
  form.ariaBusy = 'true';
  const texts = [...new FormData(form)].map(([name, text]) => [name, `${text}`.trim()] as const);
  const { score, ...fields } = Object.fromEntries(texts.filter(([, text]) => text !== ''));
  if (await submit({ ...fields, ...(score === undefined ? {} : { score: Number(score) }) })) form.reset();
  form.ariaBusy = null;
}

function FeedbackForm({ submit }: { submit: Submit }): JSX.Element {
  return (
    <form class="feedback-form" onSubmit={(event) => void send(event, submit)}>
      <label>
        Key <input name="key" required maxLength={180} defaultValue={DEFAULT_KEY} />
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
      <Button text="Submit feedback" type="submit" />
    </form>
  );
}
