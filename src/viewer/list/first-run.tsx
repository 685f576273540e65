import type { JSX } from 'preact';
import { mayChange } from '../data/api.ts';
import { Button, Command } from '../elements/controls.tsx';
import { importFile } from '../top/import-file.ts';

/** What to do while the receiver has no runs. */
export default function FirstRun(): JSX.Element {
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
            <Command text={command} />
          </li>
        ))}
      </ol>
      <p class="note">
        {mayChange.value && (
          <>
            Or <Button text="import a trace from a file" class="link" onClick={importFile} />.{' '}
          </>
        )}
        If the receiver requires a key, set <code>RUNSPAN_API_KEY</code>.
      </p>
    </div>
  );
}
