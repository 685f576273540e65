import type { JSX } from 'preact';
import type { View } from '../data/address.ts';
import { api, mayChange } from '../data/api.ts';
import { condition, queryOf, termsOf, withTerms } from '../data/filter.ts';
import { useLive } from '../data/live-value.ts';
import { address, go } from '../data/navigation.ts';
import { CopyButton, Link } from '../elements/controls.tsx';
import { plural } from '../elements/figures.ts';
import { importFile } from '../top/import-file.ts';

/** Settings that a view needs to show anything. */
const HINTS: Readonly<Partial<Record<View, { readonly option: string; readonly key: string }>>> = {
  threads: { option: 'threadId', key: 'thread_id' },
  users: { option: 'userId', key: 'user_id' },
};

/** Message that explains what to do if the list or the statistics are empty. */
export function EmptyState({ problem }: { problem: string | undefined }): JSX.Element {
  const { view, filter, project } = address.value;
  if (problem !== undefined) {
    return (
      <div class="empty" role="alert">
        <h1>{problem}</h1>
      </div>
    );
  }
  if (filter !== '' || project !== undefined) {
    return (
      <div class="empty">
        <h1>No matches</h1>
        <p>
          No {view === 'traces' || view === 'threads' ? 'traces' : 'runs'} match this filter. New matches appear
          automatically.
        </p>
        {view === 'traces' && <FailedBelow />}
        <button type="button" class="button" onClick={() => go({ filter: '', project: undefined })}>
          Clear the filter
        </button>
      </div>
    );
  }
  const hint = HINTS[view];
  if (hint !== undefined) {
    return (
      <div class="empty">
        <h1>No {view} yet</h1>
        <p>
          Set the option <code>{hint.option}</code> in your application, or the metadata <code>{hint.key}</code>. New{' '}
          {view} appear here automatically.
        </p>
      </div>
    );
  }
  return <FirstRun />;
}

const COUNTED_MAX = 100;

/** If the filter selects failed traces, offers those of which only a run below the root has failed. */
function FailedBelow(): JSX.Element | null {
  const { filter, project } = address.value;
  const isOfErrors = termsOf(filter).some(({ text }) => text === condition('status', 'error'));
  const below = withTerms(filter, condition('status', 'failed_below'));
  const { value } = useLive(
    isOfErrors ? `${filter}\n${project}` : undefined,
    (signal) => {
      const query = queryOf({ filter: below, project }, Date.now());
      query.set('limit', `${COUNTED_MAX}`);
      return api.traces(query, signal);
    },
    { isStale: () => true },
  );
  const { items = [], next } = value ?? {};
  if (items.length === 0) return null;
  const traces = next === undefined ? plural(items.length, 'trace') : `More than ${COUNTED_MAX} traces`;
  return (
    <p>
      {traces} {items.length === 1 ? 'has' : 'have'} a failed run: <Link to={{ filter: below }}>show them</Link>
    </p>
  );
}

function FirstRun(): JSX.Element {
  const variables = `RUNSPAN_ENDPOINT=${location.origin} RUNSPAN_TRACING=true`;
  const ways = [
    [
      'Start it under runspan',
      'Nothing to install in the program, no code to change.',
      'npx runspan dev -- node app.js',
    ],
    ['It runs already, or elsewhere', 'Start it with these variables.', `${variables} node app.js`],
    ['OpenTelemetry, any language', 'Point its exporter here.', `OTEL_EXPORTER_OTLP_ENDPOINT=${location.origin}`],
  ] as const;
  return (
    <div class="empty first">
      <p class="line status status-success">
        <span class="dot" aria-hidden="true" /> listening at {location.host}
      </p>
      <h1>Waiting for the first trace</h1>
      <p class="note">Start your program in one of three ways. The first call of a model appears here by itself.</p>
      <ol>
        {ways.map(([title, about, command], index) => (
          <li key={title} class="way">
            <span class="note">{index + 1}</span>
            <h2>{title}</h2>
            <p class="note">{about}</p>
            <p class="line box command">
              <code>{command}</code>
              <CopyButton text={() => command} label={`Copy: ${command}`} />
            </p>
          </li>
        ))}
      </ol>
      <p class="note">
        {mayChange.value && (
          <>
            Or{' '}
            <button type="button" class="link" onClick={importFile}>
              import a trace from a file
            </button>
            .{' '}
          </>
        )}
        If the receiver requires a key, set <code>RUNSPAN_API_KEY</code>.
      </p>
    </div>
  );
}
