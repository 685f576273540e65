import type { JSX } from 'preact';
import type { View } from '../data/address.ts';
import { mayChange } from '../data/api.ts';
import { address, go } from '../data/navigation.ts';
import { CopyButton } from '../elements/controls.tsx';
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
        <h2>{problem}</h2>
      </div>
    );
  }
  if (filter !== '' || project !== undefined) {
    return (
      <div class="empty">
        <h2>No matches</h2>
        <p>
          No {view === 'traces' || view === 'threads' ? 'root runs' : 'runs'} match this filter. New matches appear
          automatically.
        </p>
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
        <h2>No {view} yet</h2>
        <p>
          Set the option <code>{hint.option}</code> in your application, or the metadata <code>{hint.key}</code>. New{' '}
          {view} appear here automatically.
        </p>
      </div>
    );
  }
  return (
    <div class="empty">
      <h2>Waiting for the first run</h2>
      <p>Start your application with these variables:</p>
      <Command text={`RUNSPAN_ENDPOINT=${location.origin} RUNSPAN_TRACING=true node app.js`} />
      <p>Or send spans from OpenTelemetry in any language:</p>
      <Command text={`OTEL_EXPORTER_OTLP_ENDPOINT=${location.origin}`} />
      <p>Or start a receiver and your application together:</p>
      <Command text="npx runspan dev -- node app.js" />
      {mayChange.value && (
        <p>
          Or{' '}
          <button type="button" class="link" onClick={importFile}>
            import a trace from a file
          </button>
          .
        </p>
      )}
      <p>
        If the receiver requires a key, set <code>RUNSPAN_API_KEY</code>. New runs appear here automatically.
      </p>
    </div>
  );
}

function Command({ text }: { text: string }): JSX.Element {
  return (
    <p class="line box command">
      <code>{text}</code>
      <CopyButton text={() => text} label={`Copy: ${text}`} />
    </p>
  );
}
