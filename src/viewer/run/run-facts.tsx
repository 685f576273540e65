import type { ComponentChildren, JSX } from 'preact';
import type { RunDetails } from '../../receiver/store/run-view.ts';
import { fieldTerm, metadataTerm, parseFilter, printFilter, type Term, withTerm } from '../data/filter.ts';
import { address } from '../data/navigation.ts';
import { Link, Section } from '../elements/controls.tsx';
import { cost, count, duration, exact, latencyOf, millisecondsAt } from '../elements/figures.ts';
import { visible } from '../elements/visible-text.ts';
import { JsonTree } from '../payload/json-tree.tsx';

/** Longer values are shown without a link to the filter. */
const FILTER_LENGTH_MAX = 120;
const METADATA_MAX = 200;

/** Times, model, tokens, costs and tags. */
export function RunFacts({ run }: { run: RunDetails }): JSX.Element {
  const { start_time, end_time, first_token_time, model, usage, tags = [], run_type } = run;
  const project = run.session_name ?? run.session_id;
  const { input_tokens, output_tokens = 0, total_tokens, total_cost } = usage ?? {};
  const split = input_tokens === undefined ? '' : ` (${count(input_tokens)} in, ${count(output_tokens)} out)`;
  return (
    <dl class="facts">
      <Fact name="Type">{visible(run_type)}</Fact>
      {model !== undefined && <Fact name="Model">{visible(model)}</Fact>}
      <Fact name="Start" title={start_time}>
        {exact(start_time)}
      </Fact>
      {end_time !== undefined && (
        <Fact name="Latency" title={`ended ${end_time}`}>
          {latencyOf(run)}
        </Fact>
      )}
      {first_token_time !== undefined && (
        <Fact name="First token">{duration(millisecondsAt(first_token_time) - millisecondsAt(start_time))}</Fact>
      )}
      {total_tokens !== undefined && (
        <Fact name="Tokens">
          {count(total_tokens)}
          {split}
        </Fact>
      )}
      {total_cost !== undefined && <Fact name="Cost">{cost(total_cost)}</Fact>}
      {project !== undefined && <Fact name="Project">{visible(project)}</Fact>}
      {tags.length > 0 && (
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

/** Metadata with a filter link per value, and the other fields of `extra`. */
export function RunMetadata({ run }: { run: RunDetails }): JSX.Element | null {
  const { metadata = {}, ...rest } = run.extra ?? {};
  const entries = Object.entries(metadata);
  const hasRest = Object.keys(rest).length > 0;
  if (entries.length === 0 && !hasRest) return null;
  return (
    <Section title="Metadata">
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

function MetadataValue({ name, value }: { name: string; value: string }): JSX.Element {
  if (value === '' || value.length > FILTER_LENGTH_MAX) return <span>{visible(value)}</span>;
  return (
    <FilterLink term={metadataTerm(name, value)} label={`Filter by ${visible(name)} = ${visible(value)}`}>
      {visible(value)}
    </FilterLink>
  );
}

/** Link to the list of runs with the same value. */
function FilterLink({ term, label, children }: { term: Term; label: string; children: string }): JSX.Element {
  const filter = printFilter(withTerm(parseFilter(address.value.filter), term));
  const view = address.value.view === 'traces' ? 'runs' : address.value.view;
  return (
    <Link class="chip" title={label} to={{ view, filter, trace: undefined, run: undefined }}>
      {children}
    </Link>
  );
}
