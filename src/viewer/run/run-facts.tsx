import type { ComponentChildren, JSX } from 'preact';
import type { RunDetails } from '../../receiver/store/run-view.ts';
import { fieldTerm, metadataTerm, parseFilter, printFilter, type Term, withTerm } from '../data/filter.ts';
import { address, follow, linkTo } from '../data/navigation.ts';
import { cost, count, duration, exact, millisecondsAt } from '../elements/figures.ts';
import { visible } from '../elements/visible-text.ts';
import { JsonTree } from '../payload/json-tree.tsx';

/** Values that are short enough to stand in a filter. */
const FILTERED_MAX = 120;

/** Times, model, tokens, costs and tags. */
export function RunFacts({ run }: { run: RunDetails }): JSX.Element {
  const { start_time, end_time, first_token_time, model, usage, tags, run_type, session_name, session_id } = run;
  const project = session_name ?? session_id;
  const startMs = millisecondsAt(start_time);
  return (
    <dl class="facts">
      <Fact name="Type">{visible(run_type)}</Fact>
      {model !== undefined && <Fact name="Model">{visible(model)}</Fact>}
      <Fact name="Start" title={start_time}>
        {exact(start_time)}
      </Fact>
      {end_time !== undefined && (
        <Fact name="Latency" title={`ended ${end_time}`}>
          {duration(millisecondsAt(end_time) - startMs)}
        </Fact>
      )}
      {first_token_time !== undefined && (
        <Fact name="First token">{duration(millisecondsAt(first_token_time) - startMs)}</Fact>
      )}
      {usage?.total_tokens !== undefined && (
        <Fact name="Tokens">
          {count(usage.total_tokens)}
          {usage.input_tokens !== undefined &&
            ` (${count(usage.input_tokens)} in, ${count(usage.output_tokens ?? 0)} out)`}
        </Fact>
      )}
      {usage?.total_cost !== undefined && <Fact name="Cost">{cost(usage.total_cost)}</Fact>}
      {project !== undefined && <Fact name="Project">{visible(project)}</Fact>}
      {tags !== undefined && tags.length > 0 && (
        <Fact name="Tags">
          {tags.map((tag) => (
            <FilterLink key={tag} term={fieldTerm('tag', tag)} label={`Filter by the tag ${visible(tag)}`}>
              {visible(tag)}
            </FilterLink>
          ))}
        </Fact>
      )}
    </dl>
  );
}

function Fact({ name, title, children }: { name: string; title?: string; children: ComponentChildren }): JSX.Element {
  return (
    <div title={title}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** Metadata, each a way to the runs that share it, and what else is told beside the payloads. */
export function RunMetadata({ run }: { run: RunDetails }): JSX.Element | null {
  const { metadata = {}, ...rest } = run.extra ?? {};
  const entries = Object.entries(metadata);
  if (entries.length === 0 && Object.keys(rest).length === 0) return null;
  return (
    <section class="section" aria-label="Metadata">
      <header>
        <h3>Metadata</h3>
      </header>
      {entries.length > 0 && (
        <dl class="metadata">
          {entries.slice(0, 200).map(([key, value]) => (
            <div key={key}>
              <dt>{visible(key)}</dt>
              <dd>
                {typeof value === 'object' && value !== null ? (
                  <JsonTree value={value} path={`$.extra.metadata.${key}`} />
                ) : (
                  <Value name={key} value={`${value}`} />
                )}
              </dd>
            </div>
          ))}
        </dl>
      )}
      {Object.keys(rest).length > 0 && (
        <details>
          <summary>runtime and more</summary>
          <JsonTree value={rest} path="$.extra" />
        </details>
      )}
    </section>
  );
}

function Value({ name, value }: { name: string; value: string }): JSX.Element {
  if (value === '' || value.length > FILTERED_MAX) return <span>{visible(value)}</span>;
  return (
    <FilterLink term={metadataTerm(name, value)} label={`Filter by ${visible(name)} = ${visible(value)}`}>
      {visible(value)}
    </FilterLink>
  );
}

/** Leads to the list of what shares this. */
export function FilterLink({ term, label, children }: { term: Term; label: string; children: string }): JSX.Element {
  const filter = printFilter(withTerm(parseFilter(address.value.filter), term));
  const view = address.value.view === 'traces' ? 'runs' : address.value.view;
  const place = { view, filter, trace: undefined, run: undefined } as const;
  return (
    <a class="chip" href={linkTo(place)} title={label} onClick={(event) => follow(event, place)}>
      {children}
    </a>
  );
}
