import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { fieldsOf, firstText, listOf } from '../../payload/fields.ts';
import { callOf, type Records, recordWith } from '../../receiver/domain/call-records.ts';
import type { RunDetails, RunOutline } from '../../receiver/domain/run-view.ts';
import { api } from '../data/api.ts';
import { changesOf, useLive } from '../data/live-value.ts';
import { compare, compared, go } from '../data/navigation.ts';
import { usePayload } from '../data/payloads.ts';
import { saved } from '../data/trace-file.ts';
import { CopyButton, Paged, Pending, Problem, Section, Toggle } from '../elements/controls.tsx';
import { bytes, duration, millisecondsAt } from '../elements/figures.ts';
import { Icon, StatusMark } from '../elements/icon.tsx';
import { useKeys } from '../elements/keys.ts';
import { LongText } from '../elements/text.tsx';
import { visible } from '../elements/visible-text.ts';
import { Attachment } from '../payload/conversation-view.tsx';
import { JsonTree } from '../payload/json-tree.tsx';
import type { TraceModel } from '../trace/trace-model.ts';
import { CacheNote } from './cache-note.tsx';
import { FeedbackSection } from './feedback-section.tsx';
import { PayloadSection, toggleMarkdown } from './payload-section.tsx';
import { RunFacts, RunMetadata } from './run-facts.tsx';

/**
 * Delay before a selected run is read, in milliseconds. The delay avoids reading every run that the user passes with
 * the arrow keys.
 */
const SELECTION_MS = 60;
const EVENTS_PAGE = 50;

/** Panel with the details of a run. Until the details arrive, the header shows data from the tree. */
export function RunPanel({ id, model }: { id: string; model: TraceModel }): JSX.Element {
  const options = { isStale: changesOf(model.id), delayMs: SELECTION_MS };
  const { value: run, problem, reload } = useLive(id, (signal) => api.run(id, signal), options);
  const shown = run ?? model.outlineOf(id);
  const name = shown?.name ?? id;
  useKeys({ c: saved === undefined ? () => compare(id, name) : undefined, m: toggleMarkdown });
  return (
    <article ref={model.panel} class="panel scroll" aria-label={`Run ${visible(name)}`} tabIndex={-1} data-own-arrows>
      <header class="line panel-head pinned">
        <button type="button" class="button quiet narrow-only" onClick={() => go({ run: undefined })}>
          <Icon name="back" /> Runs
        </button>
        <span class="note">
          <Icon name={shown?.run_type ?? 'other'} />
        </span>
        <h2 class="clip">{visible(name)}</h2>
        {shown !== undefined && <StatusMark status={shown.status} />}
        <span class="space" />
        <CopyButton text={() => id} label="Copy the run id" word="id" />
        {saved === undefined && (
          <Toggle
            class="button quiet"
            isOn={compared.value?.id === id}
            title="Select two runs to compare them (c)"
            toggle={() => compare(id, name)}
          >
            Compare
          </Toggle>
        )}
      </header>
      {run === undefined ? <Pending problem={problem} note="Loading the run…" /> : <Problem text={problem} />}
      {run !== undefined && run.trace_id !== model.id && <Problem text="This run belongs to another trace." />}
      {run !== undefined && <RunContent run={run} others={model.recordsOf(run.id)} reload={reload} />}
    </article>
  );
}

interface ContentProps {
  readonly run: RunDetails;
  /** Further records of the same call. */
  readonly others: readonly RunOutline[];
  readonly reload: () => void;
}

function RunContent({ run, others, reload }: ContentProps): JSX.Element {
  const records = useRecords(run, others);
  const call = callOf(records);
  const withOutputs = recordWith(records, 'outputs');
  const attachments = run.attachments ?? [];
  return (
    <>
      <RunFacts run={call} />
      {saved === undefined && <CacheNote run={run} />}
      {call.error !== undefined && <RunError error={call.error} />}
      <PayloadSection run={recordWith(records, 'inputs')} field="inputs" />
      <PayloadSection run={withOutputs} field="outputs" />
      {withOutputs.payload_sizes.outputs === undefined && run.status === 'pending' && (
        <p class="loading">No outputs yet.</p>
      )}
      {attachments.length > 0 && (
        <Section title="Attachments" note={attachments.length}>
          {attachments.map((attachment) => (
            <Attachment key={attachment.name} attachment={attachment} runId={run.id} />
          ))}
        </Section>
      )}
      <FeedbackSection run={run} reload={reload} />
      <RunMetadata run={run} />
      <EventSection run={run} />
    </>
  );
}

/** Reads the further records of a call. Returns the head until they arrive. */
function useRecords(run: RunDetails, others: readonly RunOutline[]): Records<RunDetails> {
  const key = others.length === 0 ? undefined : [run.id, run.end_time, ...others.map(({ id }) => id)].join(' ');
  const read = (signal: AbortSignal): Promise<RunDetails[]> => Promise.all(others.map(({ id }) => api.run(id, signal)));
  const { value = [] } = useLive(key, read);
  return [run, ...value.filter((record) => record.same_call_as === run.id)];
}

function RunError({ error }: { error: string }): JSX.Element {
  const [headline = '', ...rest] = error.split('\n');
  return (
    <Section title="Error" controls={<CopyButton text={() => error} label="Copy the error" />}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: A scrolled region needs keyboard focus. */}
      <p class="headline" tabIndex={0}>
        <LongText value={headline} />
      </p>
      {rest.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: A scrolled region needs keyboard focus.
        <pre class="stack" tabIndex={0}>
          <LongText value={rest.join('\n')} />
        </pre>
      )}
    </Section>
  );
}

/** Section with the events of a run. Fetches the events when the user opens the section. */
function EventSection({ run }: { run: RunDetails }): JSX.Element | null {
  const size = run.payload_sizes.events;
  const [isOpen, setOpen] = useState(false);
  const { value, problem } = usePayload(run, 'events', isOpen);
  if (size === undefined) return null;
  return (
    <details class="section" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        Events <span class="note">{bytes(size)}</span>
      </summary>
      {value === undefined ? (
        isOpen && <Pending problem={problem} note="Loading…" />
      ) : (
        <ol>
          <Paged items={listOf(value)} page={EVENTS_PAGE}>
            {(event, index) => <EventRow key={index} event={event} index={index} startTime={run.start_time} />}
          </Paged>
        </ol>
      )}
    </details>
  );
}

function EventRow({ event, index, startTime }: { event: unknown; index: number; startTime: string }): JSX.Element {
  const { name, time, kwargs, ...rest } = fieldsOf(event);
  const data = kwargs ?? (Object.keys(rest).length > 0 ? rest : undefined);
  const at = firstText(time);
  return (
    <li>
      <span class="note">{at !== undefined && `+${duration(millisecondsAt(at) - millisecondsAt(startTime))}`}</span>{' '}
      <strong>{visible(`${name ?? 'event'}`)}</strong>
      {data !== undefined && <JsonTree value={data} path={`$.events[${index}].kwargs`} />}
    </li>
  );
}
