import { type Signal, signal } from '@preact/signals';
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { defined, fieldsOf, firstText, listOf } from '../../payload/fields.ts';
import type { RunDetails, RunOutline, RunSummary } from '../../receiver/domain/run-view.ts';
import { headWithRecords, type Records, recordWith } from '../../receiver/domain/trace/call-records.ts';
import { EXCHANGE_NAME } from '../../services/conversation.ts';
import { api, getJson, mayChange } from '../data/api.ts';
import { metadataCondition } from '../data/filter.ts';
import { changesOfTrace, useLive } from '../data/live-value.ts';
import { compare, compared, go } from '../data/navigation.ts';
import { usePayload } from '../data/payloads.ts';
import { isMarkdown, toggle } from '../data/preferences.ts';
import { saved } from '../data/trace-file.ts';
import { Button, CopyButton, Link, Paged, Pending, Problem, Section, Switch, Toggle } from '../elements/controls.tsx';
import { bytes, durationFigure, latencyOf, millisecondsAt, usageTitle } from '../elements/figures.ts';
import { Icon, StatusMark } from '../elements/icon.tsx';
import { useKeys } from '../elements/keys.ts';
import { visibleText } from '../elements/visible-text.ts';
import { Attachment } from '../payload/conversation-view.tsx';
import { JsonTree } from '../payload/json-tree.tsx';
import { AddToSet } from '../sets/add-to-set.tsx';
import { runKind } from '../trace/run-tree.ts';
import type { TraceModel } from '../trace/trace-model.ts';
import { FailureView } from './failure.tsx';
import { FeedbackSection } from './feedback-section.tsx';
import { PayloadSection } from './payload-section.tsx';
import { RunConversation } from './run-conversation.tsx';
import { RunFacts, RunMetadata } from './run-facts.tsx';

/** Delay before a selected run is read, in milliseconds. Avoids reading each run that the arrow keys pass. */
const SELECTION_MS = 60;
const EVENTS_PAGE = 50;

/** Panel with the details of a run. Until the details arrive, the header shows data from the tree. */
export function RunPanel({ id, model }: { id: string; model: TraceModel }): JSX.Element {
  const options = { isStale: changesOfTrace(model.id), delayMs: SELECTION_MS };
  const { value: run, problem, reload } = useLive(id, (signal) => api.run(id, signal), options);
  const shown = run ?? model.outlineOf(id);
  const name = shown?.name ?? id;
  const canTalk = isRoot(model, id) && shown !== undefined && runKind(shown) === 'other';
  const status = (isRoot(model, id) ? model.outcome.value : undefined) ?? shown?.status;
  useKeys({ c: saved === undefined ? () => compare(id, name) : undefined, m: () => toggle(isMarkdown) });
  return (
    <article
      ref={model.panel}
      class="panel scroll"
      aria-label={`Run ${visibleText(name)}`}
      tabIndex={-1}
      data-own-arrows
    >
      <header class="line panel-head pinned">
        <span
          class={`kind kind-${shown === undefined ? 'other' : runKind(shown)}`}
          title={visibleText(shown?.run_type ?? '')}
        >
          <Icon name={shown?.run_type ?? 'other'} />
        </span>
        <h2 class="clip" title={visibleText(name)}>
          {visibleText(name)}
        </h2>
        {status !== undefined && <StatusMark status={status} />}
        <span class="space" />
        {canTalk && (
          <Switch
            label="Show as"
            names={['Conversation', 'JSON']}
            shown={form.value}
            show={(name) => {
              form.value = name;
            }}
          />
        )}
        <CopyButton text={() => id} label="Copy the run id" word="id" />
        <AddToSet name="Add run to set" examples={{ run_ids: [id] }} />
        {saved === undefined && (
          <Toggle
            class="button quiet"
            isOn={compared.value?.id === id}
            title="Select two runs to compare them (c)"
            text="Compare"
            onClick={() => compare(id, name)}
          />
        )}
      </header>
      {run === undefined ? <Pending problem={problem} note="Loading the run…" /> : <Problem text={problem} />}
      {run !== undefined && run.trace_id !== model.id && <Problem text="This run belongs to another trace." />}
      {run !== undefined && <RunContent run={run} model={model} canTalk={canTalk} reload={reload} />}
    </article>
  );
}

interface ContentProps {
  readonly run: RunDetails;
  readonly model: TraceModel;
  /** Whether the run can be shown as a conversation. */
  readonly canTalk: boolean;
  readonly reload: () => void;
}

function RunContent({ run, model, canTalk, reload }: ContentProps): JSX.Element {
  const records = useRecords(run, model.recordsOf(run.id));
  const call = headWithRecords(records);
  const withOutputs = recordWith(records, 'outputs');
  const attachments = run.attachments ?? [];
  return (
    <>
      <RunFacts run={isRoot(model, run.id) ? ofTrace(model, call) : call} isTrace={isRoot(model, run.id)} />
      {saved === undefined && <CacheNote run={run} />}
      <RerunSection records={records} />
      {canTalk ? (
        <RunConversation run={call} model={model} isJson={form.value === 'JSON'} />
      ) : (
        <>
          {call.error !== undefined && (
            <section class="section" aria-label="Error">
              <FailureView error={call.error} traceId={model.id} />
            </section>
          )}
          <PayloadSection run={recordWith(records, 'inputs')} field="inputs" />
          <PayloadSection run={withOutputs} field="outputs" />
          {withOutputs.payload_sizes.outputs === undefined && run.status === 'pending' && (
            <p class="loading">No outputs yet.</p>
          )}
        </>
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

/** What the panel of a root shows. */
const form: Signal<'Conversation' | 'JSON'> = signal('Conversation');

function isRoot({ tree }: TraceModel, id: string): boolean {
  return tree.value.branches[0]?.run.id === id;
}

/** Returns the root with what its trace says as a whole. */
function ofTrace({ tree, summary }: TraceModel, root: RunDetails): RunDetails {
  const calls = tree.value.branches.map(({ run }) => run).filter(({ run_type: type }) => type === 'llm');
  const counts = new Map<string, number>();
  for (const { model, same_call_as: head } of calls) {
    if (model !== undefined && head === undefined) counts.set(model, (counts.get(model) ?? 0) + 1);
  }
  const models = [...counts].map(([model, count]) => (count === 1 ? model : `${model} ×${count}`)).join(', ');
  const { user, thread, trace } = summary.value.value ?? {};
  const { first_token_time } = calls.at(-1) ?? {};
  return { ...root, ...defined({ model: models || undefined, user, thread, first_token_time, usage: trace?.usage }) };
}

/** Reads the further records of a call. Returns the head until they arrive. */
function useRecords(run: RunDetails, others: readonly RunOutline[]): Records<RunDetails> {
  const key = others.length === 0 ? undefined : [run.id, run.end_time, ...others.map(({ id }) => id)].join(' ');
  const read = (signal: AbortSignal): Promise<RunDetails[]> => Promise.all(others.map(({ id }) => api.run(id, signal)));
  const { value = [] } = useLive(key, read);
  return [run, ...value.filter((record) => record.same_call_as === run.id)];
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
      <span class="note">
        {at !== undefined && `+${durationFigure(millisecondsAt(at) - millisecondsAt(startTime))}`}
      </span>{' '}
      <strong>{visibleText(`${name ?? 'event'}`)}</strong>
      {data !== undefined && <JsonTree value={data} path={`$.events[${index}].kwargs`} />}
    </li>
  );
}

/** Tells where the prompt of a model call differs from the prompt of an earlier call. */
function CacheNote({ run }: { run: RunDetails }): JSX.Element | null {
  const { id, run_type, end_time, usage } = run;
  const isRead = run_type === 'llm' && usage?.input_tokens !== undefined;
  const { value } = useLive(isRead ? `${id} ${end_time}` : undefined, (signal) => api.cache(id, signal));
  if (value?.text === undefined) return null;
  const { text, previous_run_id: base, previous_trace_id: trace } = value;
  return (
    <p class="note">
      {visibleText(text)} <Link to={{ trace, run: base }}>Earlier call</Link> ·{' '}
      <Link to={{ view: 'compare', base, run: id }}>Compare</Link>
    </p>
  );
}

/** The runs that repeat a model call, and a button that opens its editor. Empty if the call cannot be sent again. */
function RerunSection({ records }: { records: readonly RunDetails[] }): JSX.Element | null {
  const id = mayChange.value && saved === undefined ? records.find(exchangeOf)?.id : undefined;
  const { value: services } = useLive(id, (signal) => getJson('/query/rerun', signal));
  const query = new URLSearchParams({ filter: metadataCondition('rerun_of', `${id}`) });
  const options = { isStale: () => true, pauseMsMin: 2_000 };
  const { value } = useLive(services === undefined ? undefined : id, (signal) => api.runs(query, signal), options);
  if (id === undefined || value === undefined) return null;
  const button = <Button text="Run again" onClick={() => go({ view: 'rerun', run: id })} />;
  return (
    <Section title="Reruns" note={value.items.length || undefined} controls={button}>
      {value.items.map((run) => (
        <RerunLine key={run.id} run={run} base={id} />
      ))}
    </Section>
  );
}

/** Figures of a run, with links to the run and to its comparison with the run `base`. */
export function RerunLine({ run, base }: { run: RunSummary; base: string }): JSX.Element {
  const figures = [latencyOf(run), ...usageTitle(run.usage).split('\n')].filter(Boolean);
  return (
    <p class="line rerun-line">
      <Link to={{ view: 'traces', trace: run.trace_id, run: run.id }}>{visibleText(run.model ?? run.name)}</Link>
      <StatusMark status={run.status} /> <span class="note">{figures.join(' · ')}</span>
      {run.id !== base && <Link to={{ view: 'compare', base, run: run.id }}>Compare</Link>}
    </p>
  );
}

/** Returns the name of the attachment with the last request and response of a run. */
export function exchangeOf({ attachments = [] }: RunDetails): string | undefined {
  return attachments.findLast(({ name }) => EXCHANGE_NAME.test(name))?.name;
}
