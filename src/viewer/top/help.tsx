import { Problem } from '../elements/controls.tsx';
import { openDialog } from '../elements/dialog.tsx';
import { lazy } from '../elements/lazy.tsx';

const HelpDialog = lazy(
  () => import('./help-dialog.tsx'),
  ({ problem }) => <Problem text={problem} />,
);

export function openHelp(): void {
  openDialog(<HelpDialog />);
}
