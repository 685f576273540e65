import { type Signal, signal } from '@preact/signals';
import type { JSX } from 'preact';
import { mayChange } from '../data/api.ts';
import { Problem } from '../elements/controls.tsx';
import { Icon } from '../elements/icon.tsx';
import { lazy } from '../elements/lazy.tsx';
import type { DeletionProps } from './delete-dialog.tsx';

/** Properties of the open dialog. */
const deletion: Signal<DeletionProps | undefined> = signal(undefined);

const DeleteDialog = lazy(
  () => import('./delete-dialog.tsx'),
  ({ problem }) => <Problem text={problem} />,
);

function close(): void {
  deletion.value = undefined;
}

/** The dialog that deletes runs, while it is open. */
export function Deletion(): JSX.Element | null {
  return deletion.value === undefined ? null : <DeleteDialog {...deletion.value} close={close} />;
}

/** A button that opens the dialog. Renders nothing if the user's key does not allow deleting. */
export function DeleteButton({ label, ...props }: DeletionProps & { label: string }): JSX.Element | null {
  if (!mayChange.value) return null;
  const open = (): void => {
    deletion.value = props;
  };
  return (
    <button type="button" class="button quiet" title={label} aria-label={label} onClick={open}>
      <Icon name="delete" />
    </button>
  );
}
