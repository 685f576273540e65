import { signal } from '@preact/signals';
import type { ComponentType, JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { problemOf } from '../data/api.ts';
import { Pending } from './controls.tsx';

/**
 * Returns a component that loads its module when first shown. Shows `Fallback`, or else a note or the problem, while the
 * module loads and if loading fails. After a failure, showing the component again loads the module again.
 */
export function lazy<Props extends object>(
  load: () => Promise<{ default: ComponentType<Props> }>,
  Fallback: ComponentType<Props & { problem: string | undefined }> = Loading,
): ComponentType<Props> {
  const loaded = signal<ComponentType<Props> | undefined>(undefined);
  const problem = signal<string | undefined>(undefined);
  const start = async (): Promise<void> => {
    try {
      loaded.value ??= (await load()).default;
    } catch (error) {
      problem.value = problemOf(error);
    }
  };
  return function Lazy(props: Props): JSX.Element {
    useEffect(() => void start(), []);
    const Loaded = loaded.value;
    return Loaded === undefined ? <Fallback {...props} problem={problem.value} /> : <Loaded {...props} />;
  };
}

function Loading({ problem }: { problem: string | undefined }): JSX.Element {
  return <Pending problem={problem} note="Loading…" />;
}
