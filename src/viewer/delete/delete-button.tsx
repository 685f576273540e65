import type { JSX } from 'preact';
import { mayChange } from '../data/api.ts';
import { Button, Problem } from '../elements/controls.tsx';
import { openDialog } from '../elements/dialog.tsx';
import { lazy } from '../elements/lazy.tsx';
import type { DeletionProps } from './delete-dialog.tsx';

const DeleteDialog = lazy<DeletionProps>(
  () => import('./delete-dialog.tsx'),
  ({ problem }) => <Problem text={problem} />,
);

/** A button that opens the dialog to delete a target. Renders nothing if the user's key does not allow deleting. */
export function DeleteButton({ label, ...props }: DeletionProps & { label: string }): JSX.Element | null {
  if (!mayChange.value) return null;
  const open = (): void => openDialog(<DeleteDialog {...props} />);
  return <Button icon="delete" class="button quiet" title={label} aria-label={label} onClick={open} />;
}
