import type { JSX } from 'preact';
import { address, go } from '../data/navigation.ts';
import { CopyButton } from '../elements/controls.tsx';
import { importFile } from '../top/import-file.ts';

/** Where there is nothing to show: why, and what to type next. */
export function EmptyState({ problem }: { problem: string | undefined }): JSX.Element {
  const { filter, project } = address.value;
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
        <h2>Nothing matches</h2>
        <p>No run here is all of what the filter says. What arrives and matches will appear.</p>
        <button type="button" class="button" onClick={() => go({ filter: '', project: undefined })}>
          Clear the filter
        </button>
      </div>
    );
  }
  return (
    <div class="empty">
      <h2>Waiting for the first run</h2>
      <p>Start your application so that it sends its runs here:</p>
      <Command text={`RUNSPAN_ENDPOINT=${location.origin} RUNSPAN_TRACING=true node app.js`} />
      <p>or OpenTelemetry, of any language:</p>
      <Command text={`OTEL_EXPORTER_OTLP_ENDPOINT=${location.origin}`} />
      <p>or, once this receiver has ended, the next one and your application at once:</p>
      <Command text="npx runspan dev -- node app.js" />
      <p>
        or{' '}
        <button type="button" class="link" onClick={importFile}>
          open a trace that was exported
        </button>
        . This page follows along; there is no need to load it again. Where the receiver has a key, give it as{' '}
        <code>RUNSPAN_API_KEY</code>.
      </p>
    </div>
  );
}

function Command({ text }: { text: string }): JSX.Element {
  return (
    <p class="command">
      <code>{text}</code>
      <CopyButton text={() => text} label={`Copy: ${text}`} />
    </p>
  );
}
