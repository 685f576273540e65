import { type JSX, render } from 'preact';
import { isLocked, readPermission } from './data/api.ts';
import { listenForChanges } from './data/changes.ts';
import { address, go } from './data/navigation.ts';
import { OpenDialog } from './elements/dialog.tsx';
import { useKeys } from './elements/keys.ts';
import { lazy } from './elements/lazy.tsx';
import { ListView } from './list/list-view.tsx';
import { Login, logInFromAddress } from './top/login.tsx';
import { Tasks } from './top/tasks.tsx';
import { openHelp, TopBar, VIEWS } from './top/top-bar.tsx';

const TraceView = lazy(() => import('./trace/trace-view.tsx'));
const ThreadsView = lazy(() => import('./threads/thread-view.tsx'));
const UsersView = lazy(() => import('./threads/users-view.tsx'));
const StatisticsView = lazy(() => import('./statistics/statistics-view.tsx'));
const CompareView = lazy(() => import('./compare/compare-view.tsx'));
const RerunView = lazy(() => import('./rerun/rerun-view.tsx'));

document.addEventListener('visibilitychange', () => void listenForChanges());
addEventListener('hashchange', () => void logInFromAddress());
void logInFromAddress()
  .then(() => Promise.all([listenForChanges(), readPermission()]))
  .then(() => render(<App />, document.body));

function App(): JSX.Element {
  useKeys({ ...Object.fromEntries(VIEWS.map(({ view, keys }) => [keys, () => go({ view })])), '?': openHelp });
  if (isLocked.value) return <Login />;
  return (
    <>
      <TopBar />
      <main class="column">
        <Content />
      </main>
      <OpenDialog />
      <Tasks />
    </>
  );
}

function Content(): JSX.Element {
  const { view, trace } = address.value;
  if (trace !== undefined) return <TraceView key={trace} id={trace} />;
  if (view === 'threads') return <ThreadsView />;
  if (view === 'users') return <UsersView />;
  if (view === 'statistics') return <StatisticsView />;
  if (view === 'compare') return <CompareView />;
  if (view === 'rerun') return <RerunView />;
  return <ListView key={view} view={view} />;
}
