import type { ComponentType, JSX } from 'preact';
import { isLocked } from './data/api.ts';
import { useLoaded } from './data/live-value.ts';
import { address, go } from './data/navigation.ts';
import { useKeys } from './elements/keys.ts';
import { ListView } from './list/list-view.tsx';
import { Help, isHelpOpen } from './top/help.tsx';
import { notice } from './top/import-file.ts';
import { Login } from './top/login.tsx';
import { TopBar } from './top/top-bar.tsx';
import { TraceView } from './trace/trace-view.tsx';

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
  if (view === 'statistics')
    return <Late key={view} name={view} load={() => import('./statistics/statistics-view.tsx')} />;
  if (view === 'compare') return <Late key={view} name={view} load={() => import('./compare/compare-view.tsx')} />;
  return <ListView key={view} view={view} />;
}

/** A view that is loaded when it is wanted. */
function Late({ name, load }: { name: string; load: () => Promise<{ default: ComponentType }> }): JSX.Element {
  const { value, problem } = useLoaded(name, load);
  if (value !== undefined) return <value.default />;
  return problem === undefined ? <p class="loading">Loading…</p> : <p class="problem">{problem}</p>;
}
