import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { RemovalTarget } from '../../receiver/store/store.ts';
import { api, problemOf } from '../data/api.ts';
import { useLive } from '../data/live-value.ts';
import { go } from '../data/navigation.ts';
import { Pending, Problem } from '../elements/controls.tsx';
import { plural } from '../elements/figures.ts';
import { useKeys } from '../elements/keys.ts';
import { visible } from '../elements/visible-text.ts';
import { showNotice } from '../top/import-file.ts';

/** What to delete. */
export interface DeletionProps {
  /** If undefined, the dialog asks for a thread, user or project. */
  readonly target?: RemovalTarget;
  /** Name of the run or trace. */
  readonly name?: string | undefined;
}

const KINDS = ['thread', 'user', 'project'] as const;

/** Dialog that counts the runs of a target, and deletes the runs after a confirmation. */
export default function DeleteDialog(props: DeletionProps & { close: () => void }): JSX.Element {
  const { target: given, name, close } = props;
  const dialog = useRef<HTMLDialogElement>(null);
  const target = useSignal<RemovalTarget | undefined>(given);
  useKeys({ Escape: close }, true);
  useEffect(() => dialog.current?.showModal(), []);
  const title = given === undefined ? 'Delete runs' : `Delete the ${given.kind} ${visible(name ?? given.id)}`;
  return (
    <dialog ref={dialog} class="dialog popup" aria-label={title} onClose={close}>
      <header class="line">
        <h2 class="clip">{title}</h2>
        <span class="space" />
        <button type="button" class="button quiet" onClick={close}>
          Cancel
        </button>
      </header>
      {given === undefined && (
        <TargetForm
          choose={(chosen) => {
            target.value = chosen;
          }}
        />
      )}
      {target.value !== undefined && <Confirmation target={target.value} close={close} />}
    </dialog>
  );
}

function TargetForm({ choose }: { choose: (target: RemovalTarget) => void }): JSX.Element {
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const kind = KINDS.find((one) => one === form.get('kind')) ?? 'thread';
    choose({ kind, id: `${form.get('id') ?? ''}` });
  };
  return (
    <form class="line" onSubmit={submit}>
      <label>
        Delete{' '}
        <select name="kind">
          {KINDS.map((kind) => (
            <option key={kind}>{kind}</option>
          ))}
        </select>
      </label>
      <label>
        Id or name <input name="id" required />
      </label>
      <button type="submit" class="button">
        Count the runs
      </button>
    </form>
  );
}

function Confirmation({ target, close }: { target: RemovalTarget; close: () => void }): JSX.Element {
  const { kind, id } = target;
  const { value, problem } = useLive(JSON.stringify(target), async (signal) => ({
    ...(await api.removable(target, signal)),
    target,
  }));
  const isDeleting = useSignal(false);
  const failure = useSignal<string | undefined>(undefined);
  // Until the counts of another target arrive, the value is that of the earlier target.
  if (value?.target !== target || problem !== undefined) return <Pending problem={problem} note="Counting the runs…" />;
  const remove = async (): Promise<void> => {
    isDeleting.value = true;
    try {
      const { runs, traces } = await api.remove(target);
      showNotice(`Deleted ${plural(runs, 'run')} of ${plural(traces, 'trace')}`);
      close();
      if (kind === 'trace') go({ trace: undefined, run: undefined });
      if (kind === 'run') go({ run: undefined });
      if (kind === 'thread') go({ thread: undefined });
    } catch (error) {
      failure.value = problemOf(error);
    }
    isDeleting.value = false;
  };
  const runs = plural(value.runs, 'run');
  return (
    <>
      <p>
        This deletes {runs} of {plural(value.traces, 'trace')} with all inputs, outputs, attachments and feedback. The
        runs cannot be restored. For 30 days, the receiver ignores messages for them.
      </p>
      <p class="clip note">
        {kind} {visible(id)}
      </p>
      <Problem text={failure.value} />
      <button type="button" class="button bad" disabled={isDeleting.value} onClick={() => void remove()}>
        {isDeleting.value ? 'Deleting…' : `Delete ${runs}`}
      </button>
    </>
  );
}
