import type { JSX } from 'preact';
import type { RunDetails } from '../../receiver/domain/run-view.ts';
import { condition, metadataCondition, withTerms } from '../data/filter.ts';
import { address } from '../data/navigation.ts';
import { isInternalShown, toggle } from '../data/preferences.ts';
import { saved } from '../data/trace-file.ts';
import { Link, type Pair, Pairs, Toggle } from '../elements/controls.tsx';
import {
  cachedShare,
  costFigure,
  countFigure,
  exact,
  firstTokenOf,
  latencyOf,
  plural,
  usageTitle,
  useNow,
} from '../elements/figures.ts';
import { visibleText } from '../elements/visible-text.ts';
import { JsonTree } from '../payload/json-tree.tsx';

/** Maximum length of a value that is shown as a filter link. */
const FILTER_LENGTH_MAX = 120;
const METADATA_MAX = 200;
const TICK_MS = 1_000;
/** Metadata that LangSmith's conventions, LangGraph and wrappers add. The facts of a run show its model and its usage. */
const INTERNAL_KEYS = /^(?:ls_|langgraph_|__pregel_|(?:checkpoint_ns|recorded_by|usage_metadata)$)/;

/** Facts of a run. The times of a trace are in its header. */
export function RunFacts({ run, isTrace }: { run: RunDetails; isTrace: boolean }): JSX.Element {
  const { start_time, usage, tags = [], thread, user, no_cost, price_table } = run;
  const isPending = run.status === 'pending';
  const nowMs = useNow(isPending, TICK_MS);
  const { input_tokens, output_tokens = 0, total_tokens, total_cost } = usage ?? {};
  const split = input_tokens !== undefined && (
    <span class="note">{`${countFigure(input_tokens)} in, ${countFigure(output_tokens)} out`}</span>
  );
  const tokens = total_tokens !== undefined && [countFigure(total_tokens), split];
  const cost = total_cost === undefined ? no_cost && `unknown: ${visibleText(no_cost)}` : costFigure(total_cost);
  const origin = price_table === undefined ? 'reported by the run' : `calculated with ${price_table}`;
  const latency = (!isTrace || isPending) && latencyOf(run, nowMs);
  const facts: readonly Pair[] = [
    ['Model', visibleText(run.model ?? '')],
    ['Tokens', tokens, usageTitle(usage)],
    // A saved trace does not say where a cost comes from.
    ['Cost', cost, no_cost ?? (saved ? '' : origin)],
    ['Cached', cachedShare(usage), usageTitle(usage)],
    ['First token', firstTokenOf(run)],
    isPending ? ['Running for', latency, 'until now'] : ['Latency', latency, `ended ${run.end_time}`],
    ['Start', !isTrace && exact(start_time).slice(11), exact(start_time)],
    ['User', user && <Link to={{ view: 'users', filter: condition('user', user) }}>{visibleText(user)}</Link>],
    ['Thread', thread && <Link to={{ view: 'threads', thread }}>{visibleText(thread)}</Link>],
    ['Tags', tags.length > 0 && tags.map((tag) => <FilterLink key={tag} added={condition('tag', tag)} value={tag} />)],
  ];
  return <Pairs class="facts" pairs={facts.filter(([, value]) => value)} />;
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
  const summary = [
    own.length > 0 && plural(own.length, 'key'),
    internals > 0 && !isInternalShown.value && plural(internals, 'internal key'),
  ];
  return (
    <details class="section">
      <summary>
        Metadata <span class="note">{summary.filter(Boolean).join(' · ')}</span>
      </summary>
      <Pairs
        pairs={entries
          .slice(0, METADATA_MAX)
          .map(([key, value]) => [
            key,
            typeof value === 'object' && value !== null ? (
              <JsonTree value={value} path={`$.extra.metadata.${key}`} />
            ) : (
              <FilterLink added={metadataCondition(key, `${value}`)} value={`${value}`} />
            ),
          ])}
      />
      {hasRest && (
        <details>
          <summary>Runtime and other fields</summary>
          <JsonTree value={rest} path="$.extra" />
        </details>
      )}
      {internals > 0 && <InternalToggle count={internals} noun="internal key" />}
    </details>
  );
}

/** A button that shows or hides the steps and the metadata that frameworks add. */
export function InternalToggle({ count, noun }: { count: number; noun: string }): JSX.Element {
  return (
    <Toggle
      text={`+${plural(count, noun)}`}
      class="more"
      isOn={isInternalShown.value}
      title="Show or hide what frameworks add"
      onClick={() => toggle(isInternalShown)}
    />
  );
}

/** Link to the list of runs with the same value. A long value is only text. */
function FilterLink({ added, value }: { added: string; value: string }): JSX.Element {
  if (value === '' || value.length > FILTER_LENGTH_MAX) return <span>{visibleText(value)}</span>;
  const filter = withTerms(address.value.filter, added);
  const view = address.value.view === 'traces' ? 'runs' : address.value.view;
  return (
    <Link class="chip" title={`Filter by ${visibleText(added)}`} to={{ view, filter }}>
      {visibleText(value)}
    </Link>
  );
}
