import type { JSX } from 'preact';
import type { RunDetails } from '../../receiver/domain/run-view.ts';
import { condition, metadataCondition, withTerms } from '../data/filter.ts';
import { address } from '../data/navigation.ts';
import { isInternalShown } from '../data/preferences.ts';
import { saved } from '../data/trace-file.ts';
import { type Fact, Facts, Link, Section, Toggle } from '../elements/controls.tsx';
import {
  cachedShare,
  cost,
  count,
  exact,
  firstTokenOf,
  latencyOf,
  plural,
  usageTitle,
  useNow,
} from '../elements/figures.ts';
import { visible } from '../elements/visible-text.ts';
import { JsonTree } from '../payload/json-tree.tsx';

/** Maximum length of a value that is shown as a filter link. */
const FILTER_LENGTH_MAX = 120;
const METADATA_MAX = 200;
const TICK_MS = 1_000;
/** Metadata that LangSmith's conventions and LangGraph add. The facts of a run show its model and its thread. */
const INTERNAL_KEYS = /^(?:ls_|langgraph_|__pregel_|checkpoint_ns$)/;

export function RunFacts({ run }: { run: RunDetails }): JSX.Element {
  const { start_time, usage, tags = [], thread, user, no_cost, price_table } = run;
  const isPending = run.status === 'pending';
  const nowMs = useNow(isPending, TICK_MS);
  const { input_tokens, output_tokens = 0, total_tokens, total_cost } = usage ?? {};
  const split = input_tokens === undefined ? '' : ` (${count(input_tokens)} in, ${count(output_tokens)} out)`;
  const facts: readonly Fact[] = [
    { name: 'Type', value: visible(run.run_type) },
    { name: 'Model', value: visible(run.model ?? '') },
    { name: 'Start', value: exact(start_time), title: start_time },
    {
      name: isPending ? 'Running for' : 'Latency',
      value: latencyOf(run, nowMs),
      title: isPending ? 'until now' : `ended ${run.end_time}`,
    },
    { name: 'First token', value: firstTokenOf(run) },
    { name: 'Tokens', value: total_tokens !== undefined && count(total_tokens) + split, title: usageTitle(usage) },
    { name: 'Cached', value: cachedShare(usage), title: usageTitle(usage) },
    {
      name: 'Cost',
      value: total_cost === undefined ? no_cost && `unknown: ${visible(no_cost)}` : cost(total_cost),
      // A saved trace does not say where a cost comes from.
      title:
        no_cost ?? (saved ? '' : price_table === undefined ? 'reported by the run' : `calculated with ${price_table}`),
    },
    { name: 'Project', value: visible(run.session_name ?? run.session_id ?? '') },
    { name: 'Thread', value: thread && <Link to={{ view: 'threads', thread }}>{visible(thread)}</Link> },
    {
      name: 'User',
      value: user && <Link to={{ view: 'users', filter: condition('user', user) }}>{visible(user)}</Link>,
    },
    {
      name: 'Tags',
      value: tags.length > 0 && tags.map((tag) => <FilterLink key={tag} added={condition('tag', tag)} value={tag} />),
    },
  ];
  return <Facts facts={facts.filter(({ value }) => value)} />;
}

/** Shows a run's metadata with a filter link for each value, and the other fields in `extra`. */
export function RunMetadata({ run }: { run: RunDetails }): JSX.Element | null {
  const { metadata = {}, ...rest } = run.extra ?? {};
  const all = Object.entries(metadata);
  const own = all.filter(([key]) => !INTERNAL_KEYS.test(key));
  const entries = isInternalShown.value ? all : own;
  const hasRest = Object.keys(rest).length > 0;
  if (all.length === 0 && !hasRest) return null;
  const internals = all.length - own.length;
  const controls = internals > 0 && <InternalToggle count={internals} noun="internal key" />;
  return (
    <Section title="Metadata" controls={controls}>
      <dl class="pairs">
        {entries.slice(0, METADATA_MAX).map(([key, value]) => (
          <div key={key}>
            <dt class="clip">{visible(key)}</dt>
            <dd>
              {typeof value === 'object' && value !== null ? (
                <JsonTree value={value} path={`$.extra.metadata.${key}`} />
              ) : (
                <MetadataValue name={key} value={`${value}`} />
              )}
            </dd>
          </div>
        ))}
      </dl>
      {hasRest && (
        <details>
          <summary>Runtime and other fields</summary>
          <JsonTree value={rest} path="$.extra" />
        </details>
      )}
    </Section>
  );
}

/** A button that shows or hides the steps and the metadata that frameworks add. */
export function InternalToggle(props: { count: number; noun: string; class?: string }): JSX.Element {
  const { count, noun, class: name = 'tab' } = props;
  const toggle = (): void => {
    isInternalShown.value = !isInternalShown.value;
  };
  return (
    <Toggle class={name} isOn={isInternalShown.value} title="Show or hide what frameworks add" toggle={toggle}>
      +{plural(count, noun)}
    </Toggle>
  );
}

function MetadataValue({ name, value }: { name: string; value: string }): JSX.Element {
  if (value === '' || value.length > FILTER_LENGTH_MAX) return <span>{visible(value)}</span>;
  return <FilterLink added={metadataCondition(name, value)} value={value} />;
}

/** Link to the list of runs with the same value. */
function FilterLink({ added, value }: { added: string; value: string }): JSX.Element {
  const filter = withTerms(address.value.filter, added);
  const view = address.value.view === 'traces' ? 'runs' : address.value.view;
  return (
    <Link class="chip" title={`Filter by ${visible(added)}`} to={{ view, filter }}>
      {visible(value)}
    </Link>
  );
}
