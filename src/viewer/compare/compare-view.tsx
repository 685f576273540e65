import type { JSX } from 'preact';
import { useMemo, useRef, useState } from 'preact/hooks';
import type { PayloadField, RunDetails } from '../../receiver/store/run-view.ts';
import { api } from '../data/api.ts';
import { useLoaded } from '../data/live-value.ts';
import { address, go } from '../data/navigation.ts';
import { payload } from '../data/payloads.ts';
import { duration, millisecondsAt, plural } from '../elements/figures.ts';
import { StatusMark } from '../elements/status-mark.tsx';
import { useRowWindow } from '../elements/use-row-window.ts';
import { visible } from '../elements/visible-text.ts';
import { RunLink } from '../run/run-panel.tsx';
import { type DiffLine, diffLines } from './line-diff.ts';
import { linesOf } from './value-lines.ts';

const ROW_HEIGHT = 18;
/** Equal lines that stay around what differs. */
const CONTEXT = 3;

/** Two runs, and where their payloads differ. */
export default function CompareView(): JSX.Element {
  const { base = '', run = '' } = address.value;
  const { value, problem } = useLoaded(`${base} ${run}`, (signal) =>
    Promise.all([api.run(base, signal), api.run(run, signal)]),
  );
  const [field, setField] = useState<PayloadField>('inputs');
  const [isWhole, setWhole] = useState(false);
  if (value === undefined)
    return <p class={problem === undefined ? 'loading' : 'problem'}>{problem ?? 'Loading two runs…'}</p>;
  const [before, after] = value;
  return (
    <section class="compare" aria-label="Comparison of two runs">
      <header class="compare-head">
        <Side run={before} sign="−" />
        <button type="button" class="button quiet" onClick={() => go({ base: run, run: base }, { replace: true })}>
          Swap
        </button>
        <Side run={after} sign="+" />
        <span class="space" />
        {(['inputs', 'outputs'] as const).map((one) => (
          <button type="button" key={one} class="tab" aria-pressed={one === field} onClick={() => setField(one)}>
            {one === 'inputs' ? 'Inputs' : 'Outputs'}
          </button>
        ))}
        <button type="button" class="tab" aria-pressed={isWhole} onClick={() => setWhole(!isWhole)}>
          All lines
        </button>
      </header>
      <PayloadDiff key={field} before={before} after={after} field={field} isWhole={isWhole} />
    </section>
  );
}

function Side({ run, sign }: { run: RunDetails; sign: string }): JSX.Element {
  const { start_time, end_time, usage } = run;
  return (
    <span class="compare-side">
      <strong aria-hidden="true">{sign}</strong> <RunLink run={run}>{visible(run.name)}</RunLink>{' '}
      <StatusMark status={run.status} />
      <span class="note">
        {end_time !== undefined && ` ${duration(millisecondsAt(end_time) - millisecondsAt(start_time))}`}
        {usage?.total_tokens !== undefined && ` · ${usage.total_tokens.toLocaleString('en')} tokens`}
      </span>
    </span>
  );
}

function PayloadDiff({
  before,
  after,
  field,
  isWhole,
}: {
  before: RunDetails;
  after: RunDetails;
  field: PayloadField;
  isWhole: boolean;
}): JSX.Element {
  const { value, problem } = useLoaded(`${before.id} ${after.id} ${field}`, (signal) =>
    Promise.all([before, after].map((run) => payload(run, field, signal))),
  );
  const lines = useMemo(() => (value === undefined ? [] : diffLines(linesOf(value[0]), linesOf(value[1]))), [value]);
  const shown = useMemo(() => (isWhole ? lines : withContext(lines)), [lines, isWhole]);
  const element = useRef<HTMLDivElement>(null);
  const { first, end } = useRowWindow(element, ROW_HEIGHT, shown.length);
  const removed = lines.filter(({ kind }) => kind === 'removed').length;
  const added = lines.filter(({ kind }) => kind === 'added').length;
  const isEqual = value !== undefined && removed + added === 0;
  return (
    <>
      <p class="note" role="status">
        {problem}
        {value === undefined && problem === undefined && 'Loading…'}
        {isEqual && `The ${field} are equal.`}
        {value !== undefined &&
          !isEqual &&
          `${plural(removed, 'line')} only before, ${plural(added, 'line')} only after`}
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: What scrolls has to be reached by the keyboard. */}
      <section ref={element} class="diff" tabIndex={0} data-own-arrows aria-label={`Differences of the ${field}`}>
        <div class="rows-space" style={{ height: `${shown.length * ROW_HEIGHT}px` }}>
          <div class="rows-in-sight" style={{ transform: `translateY(${first * ROW_HEIGHT}px)` }}>
            {shown.slice(first, end).map(({ kind, text }, offset) => (
              <div key={first + offset} class={`diff-line diff-${kind}`}>
                <span class="diff-sign">{SIGNS[kind]}</span>
                {kind !== 'same' && kind !== 'gap' && <span class="unseen">{kind}</span>}
                {visible(text)}
              </div>
            ))}
          </div>
        </div>
      </section>
    </>
  );
}

const SIGNS: Readonly<Record<string, string>> = { same: ' ', removed: '−', added: '+', gap: '⋯' };

/** Without the equal lines that are far from any other. */
function withContext(lines: readonly DiffLine[]): { kind: DiffLine['kind'] | 'gap'; text: string }[] {
  const isNear = new Uint8Array(lines.length);
  for (const [index, { kind }] of lines.entries()) {
    if (kind !== 'same') isNear.fill(1, Math.max(0, index - CONTEXT), index + CONTEXT + 1);
  }
  const shown: { kind: DiffLine['kind'] | 'gap'; text: string }[] = [];
  for (let index = 0; index < lines.length; index++) {
    if (isNear[index] === 1) shown.push(lines[index] as DiffLine);
    else {
      const next = isNear.indexOf(1, index);
      const left = (next === -1 ? lines.length : next) - index;
      shown.push({ kind: 'gap', text: plural(left, 'equal line') });
      index += left - 1;
    }
  }
  return shown;
}
