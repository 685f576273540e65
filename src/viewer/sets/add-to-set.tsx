import type { JSX } from 'preact';
import { type Examples, sets } from '../data/api.ts';
import { lazy } from '../elements/lazy.tsx';
import { Menu } from '../elements/menu.tsx';

const SetPanel = lazy<{ examples: Examples }>(() => import('./set-panel.tsx'));

/** A menu that adds traces or runs to a set. Renders nothing if the user may not add examples to sets. */
export function AddToSet({ name, examples }: { name: string; examples: Examples }): JSX.Element | null {
  return sets.value === undefined ? null : <Menu name={name} icon="add" panel={<SetPanel examples={examples} />} />;
}
