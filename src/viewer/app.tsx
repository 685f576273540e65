import type { ComponentType, JSX } from 'preact';
import { isLocked } from './api.ts';
import { Help, isHelpOpen } from './help.tsx';
import { notice } from './import-file.ts';
import { useKeys } from './keys.ts';
import { ListView } from './list-view.tsx';
import { Login } from './login.tsx';
import { address, go } from './navigation.ts';
import { TopBar } from './top-bar.tsx';
import { TraceView } from './trace-view.tsx';
import { useLoaded } from './use-loaded.ts';

/** The page. */
export function App(): JSX.Element {
  const leave = { trace: undefined, run: undefined, base: undefined };
  useKeys({
    'g t': () => go({ view: 'traces', ...leave }),
    'g l': () => go({ view: 'traces', ...leave }),
    'g r': () => go({ view: 'runs', ...leave }),
    'g s': () => go({ view: 'statistics', ...leave }),
    '?': () => {
      isHelpOpen.value = true;
    },
  });
  if (isLocked.value) return <Login />;
  return (
    <>
      <TopBar />
      <main>
        <Content />
      </main>
      <Help />
      <p class="notice" role="status">
        {notice.value}
      </p>
    </>
  );
}

function Content(): JSX.Element {
  const { view, trace } = address.value;
  if (trace !== undefined) return <TraceView key={trace} id={trace} />;
  if (view === 'statistics') return <Late key={view} name={view} load={() => import('./statistics-view.tsx')} />;
  if (view === 'compare') return <Late key={view} name={view} load={() => import('./compare-view.tsx')} />;
  return <ListView key={view} view={view} />;
}

/** A view that is loaded when it is wanted. */
function Late({ name, load }: { name: string; load: () => Promise<{ default: ComponentType }> }): JSX.Element {
  const { value, problem } = useLoaded(name, load);
  if (value !== undefined) return <value.default />;
  return problem === undefined ? <p class="loading">Loading…</p> : <p class="problem">{problem}</p>;
}
