import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import type { DeletionTarget } from '../../receiver/domain/query/query.ts';
import { api, problemOf } from '../data/api.ts';
import { useLive } from '../data/live-value.ts';
import { go } from '../data/navigation.ts';
import { Button, Pending, Problem } from '../elements/controls.tsx';
import { closeDialog, Dialog } from '../elements/dialog.tsx';
import { plural } from '../elements/figures.ts';
import { visibleText } from '../elements/visible-text.ts';
import { showNotice } from '../top/tasks.tsx';

export interface DeletionProps {
  readonly target: DeletionTarget;
  readonly name?: string | undefined;
}

/** Dialog that counts the runs of a target, and deletes the runs after a confirmation. */
export default function DeleteDialog({ target, name }: DeletionProps): JSX.Element {
  const { kind, id } = target;
  const { value, problem } = useLive(id, (signal) => api.removable(target, signal));
  const isDeleting = useSignal(false);
  const failure = useSignal<string | undefined>(undefined);
  const remove = async (): Promise<void> => {
    isDeleting.value = true;
    try {
      const counts = await api.remove(target);
      showNotice(`Deleted ${plural(counts.runs, 'run')} of ${plural(counts.traces, 'trace')}`);
      closeDialog();
      if (kind !== 'user') go({ [kind]: undefined });
    } catch (error) {
      failure.value = problemOf(error);
    }
    isDeleting.value = false;
  };
  return (
    <Dialog title={`Delete the ${kind} ${visibleText(name ?? id)}`} closeLabel="Cancel">
      {value === undefined ? (
        <Pending problem={problem} note="Counting the runs…" />
      ) : (
        <>
          <p>
            This deletes {plural(value.runs, 'run')} of {plural(value.traces, 'trace')}
            {(kind === 'user' || kind === 'thread') && `: each trace in which any run has this ${kind},`} with all
            inputs, outputs, attachments and feedback. The runs cannot be restored. For 30 days, the receiver ignores
            messages for them.
          </p>
          {name !== undefined && (
            <p class="clip note">
              {kind} {visibleText(id)}
            </p>
          )}
          <Problem text={failure.value} />
          <Button
            text={isDeleting.value ? 'Deleting…' : `Delete ${plural(value.runs, 'run')}`}
            class="button bad"
            disabled={isDeleting.value}
            onClick={() => void remove()}
          />
        </>
      )}
    </Dialog>
  );
}
