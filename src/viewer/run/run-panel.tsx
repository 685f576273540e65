import { useSignal } from '@preact/signals';
import type { JSX, RefObject } from 'preact';
import { useEffect, useMemo } from 'preact/hooks';
import type { RunDetails, RunOutline } from '../../receiver/store/run-view.ts';
import { compare, compared } from '../compare/comparison.ts';
import { api, problemOf, type TraceContent } from '../data/api.ts';
import { follow, go, linkTo } from '../data/navigation.ts';
import { Refresh } from '../data/refresh.ts';
import { CopyButton } from '../elements/controls.tsx';
import { Icon } from '../elements/icon.tsx';
import { useKeys } from '../elements/keys.ts';
import { StatusMark } from '../elements/status-mark.tsx';
import { LongText } from '../elements/text.tsx';
import { visible } from '../elements/visible-text.ts';
import { Attachment } from '../payload/conversation-view.tsx';
import { PayloadSection } from '../payload/payload-section.tsx';
import { isMarkdown } from '../payload/reading.tsx';
import { EventList } from './event-list.tsx';
import { FeedbackSection } from './feedback-section.tsx';
import { RunFacts, RunMetadata } from './run-facts.tsx';

/** Whoever steps through a tree passes by most of its runs. */
const PASSING_MS = 60;

/** One run: what it was asked and what it answered, and all that is told of it. */
export function RunPanel({
  id,
  outline,
  traceId,
  content,
  element,
}: {
  id: string;
  /** As the tree has it. */
  outline: RunOutline | undefined;
  traceId: string;
  /** With every other one the run is read again: of what has changed the tree shows only a part. */
  content: TraceContent;
  element: RefObject<HTMLElement | null>;
}): JSX.Element {
  const { run, problem, reload } = useDetails(id, content);
  const name = run?.name ?? outline?.name ?? id;
  useKeys({
    c: () => compare(id, name),
    m: () => {
      isMarkdown.value = !isMarkdown.value;
    },
  });
  const isElsewhere = run !== undefined && run.trace_id !== traceId;
  return (
    <article ref={element} class="panel" aria-label={`Run ${visible(name)}`} tabIndex={-1} data-own-arrows>
      <header class="panel-head">
        <button type="button" class="button quiet narrow-only" onClick={() => go({ run: undefined })}>
          <Icon name="back" /> Runs
        </button>
        <span class="type">
          <Icon name={run?.run_type ?? outline?.run_type ?? 'other'} />
        </span>
        <h2>{visible(name)}</h2>
        {(run ?? outline) !== undefined && <StatusMark status={(run ?? outline)?.status ?? 'pending'} />}
        <span class="space" />
        <CopyButton text={() => id} label="Copy the id of the run" word="id" />
        <button
          type="button"
          class="button quiet"
          aria-pressed={compared.value?.id === id}
          title="Compare with another run: press here, then there (c)"
          onClick={() => compare(id, name)}
        >
          Compare
        </button>
      </header>
      {problem !== undefined && <p class="problem">{problem}</p>}
      {run === undefined && problem === undefined && <p class="loading">Loading the run…</p>}
      {isElsewhere && <p class="problem">This run is of another trace.</p>}
      {run !== undefined && <RunContent run={run} reload={reload} />}
    </article>
  );
}

function RunContent({ run, reload }: { run: RunDetails; reload: () => void }): JSX.Element {
  return (
    <>
      <RunFacts run={run} />
      {run.error !== undefined && <RunError error={run.error} />}
      <PayloadSection run={run} field="inputs" />
      <PayloadSection run={run} field="outputs" />
      {run.payload_sizes.outputs === undefined && run.status === 'pending' && <p class="loading">No outputs yet.</p>}
      {run.attachments !== undefined && run.attachments.length > 0 && (
        <section class="section" aria-label="Attachments">
          <header>
            <h3>Attachments</h3>
            <span class="note">{run.attachments.length}</span>
          </header>
          {run.attachments.map((attachment) => (
            <Attachment key={attachment.name} attachment={attachment} runId={run.id} />
          ))}
        </section>
      )}
      <FeedbackSection run={run} reload={reload} />
      <RunMetadata run={run} />
      <EventList run={run} />
    </>
  );
}

function RunError({ error }: { error: string }): JSX.Element {
  const [headline = '', ...rest] = error.split('\n');
  return (
    <section class="section error-section" aria-label="Error">
      <header>
        <h3>Error</h3>
        <span class="space" />
        <CopyButton text={() => error} label="Copy the error" />
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: What scrolls has to be reached by the keyboard. */}
      <p class="headline" tabIndex={0}>
        <LongText value={headline} />
      </p>
      {rest.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: What scrolls has to be reached by the keyboard.
        <pre class="stack" tabIndex={0}>
          <LongText value={rest.join('\n')} />
        </pre>
      )}
    </section>
  );
}

/** The run, read again whenever `version` changes; what was read before stays until then. */
function useDetails(id: string, version: TraceContent): { run?: RunDetails; problem?: string; reload: () => void } {
  const loaded = useSignal<{ run?: RunDetails; problem?: string }>({});
  const refresh = useMemo(
    () =>
      new Refresh(async (signal) => {
        try {
          loaded.value = { run: await api.run(id, signal) };
        } catch (error) {
          const problem = problemOf(error);
          if (problem !== undefined) loaded.value = { ...loaded.value, problem };
        }
      }),
    [id],
  );
  useEffect(() => {
    const timer = setTimeout(() => refresh.ask(), PASSING_MS);
    return () => clearTimeout(timer);
  }, [refresh, version]);
  useEffect(() => () => refresh.end(), [refresh]);
  return { ...loaded.value, reload: () => refresh.ask() };
}

/** A link to a run in its trace, from where one goes on to the list. */
export function RunLink({
  run,
  children,
}: {
  run: { id: string; trace_id: string };
  children: JSX.Element | string;
}): JSX.Element {
  const place = { view: 'runs', trace: run.trace_id, run: run.id, base: undefined } as const;
  return (
    <a href={linkTo(place)} onClick={(event) => follow(event, place)}>
      {children}
    </a>
  );
}
