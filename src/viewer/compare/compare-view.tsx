import type { JSX } from 'preact';
import { useMemo, useRef, useState } from 'preact/hooks';
import type { RunDetails } from '../../receiver/domain/run-view.ts';
import { messagesOfInputs, messagesOfOutputs } from '../../services/conversation.ts';
import { api, ReceiverError } from '../data/api.ts';
import { useLive } from '../data/live-value.ts';
import { address, back, go } from '../data/navigation.ts';
import { payload } from '../data/payloads.ts';
import { Button, Link, Pending, Toggle } from '../elements/controls.tsx';
import { latencyOf, plural } from '../elements/figures.ts';
import { StatusMark } from '../elements/icon.tsx';
import { useKeys } from '../elements/keys.ts';
import { Rows, useRowWindow } from '../elements/rows.tsx';
import { LongText } from '../elements/text.tsx';
import { visibleText } from '../elements/visible-text.ts';
import { diffLines, linesOf } from './line-diff.ts';
import { diffFields, diffMessages, type MessageLine } from './run-diff.ts';

const ROW_HEIGHT = 18;
const CONTEXT = 3;

type Field = 'inputs' | 'outputs';

interface ShownLine {
  readonly kind: MessageLine['kind'] | 'gap';
  readonly text: string;
}

export default function CompareView(): JSX.Element {
  const { base, run } = address.value;
  const [field, setField] = useState<Field>('inputs');
  const [isComplete, setComplete] = useState(false);
  const { value, problem } = useLive(`${base} ${run}`, (signal) => readRuns(base, run, signal));
  useKeys({ Escape: back });
  if (value === undefined) {
    return (
      <>
        <header class="line compare-head">
          <BackButton />
        </header>
        <Pending problem={problem} note="Loading two runs…" />
      </>
    );
  }
  const [before, after] = value;
  return (
    <section class="column" aria-label="Comparison of two runs">
      <h1 class="unseen">Comparison of two runs</h1>
      <header class="line compare-head">
        <BackButton />
        <Side run={before} sign="−" />
        <Button text="Swap" class="button quiet" onClick={() => go({ base: run, run: base }, { replace: true })} />
        <Side run={after} sign="+" />
        <span class="space" />
        <Toggle text="Inputs" isOn={field === 'inputs'} onClick={() => setField('inputs')} />
        <Toggle text="Outputs" isOn={field === 'outputs'} onClick={() => setField('outputs')} />
        <Toggle text="Show equal" isOn={isComplete} onClick={() => setComplete(!isComplete)} />
      </header>
      <FieldTable runs={value} isComplete={isComplete} />
      <PayloadDiff runs={value} field={field} isComplete={isComplete} />
    </section>
  );
}

async function readRuns(base: string | undefined, run: string | undefined, signal: AbortSignal) {
  if (base === undefined || run === undefined) {
    throw new ReceiverError(404, `The URL does not name a ${base === undefined ? 'first' : 'second'} run.`);
  }
  return Promise.all([api.run(base, signal), api.run(run, signal)]);
}

function BackButton(): JSX.Element {
  return <Button icon="back" text="Back" class="button quiet" title="Back (Esc)" onClick={back} />;
}

function Side({ run, sign }: { run: RunDetails; sign: string }): JSX.Element {
  const tokens = run.usage?.total_tokens;
  return (
    <span class="line">
      <strong aria-hidden="true">{sign}</strong>
      <Link to={{ view: 'runs', trace: run.trace_id, run: run.id }}>{visibleText(run.name)}</Link>
      <StatusMark status={run.status} />
      <span class="note">
        {latencyOf(run)}
        {tokens !== undefined && ` · ${tokens.toLocaleString('en')} tokens`}
      </span>
    </span>
  );
}

/** Table of the fields and metadata that differ, or of all of them. */
function FieldTable(props: { runs: readonly [RunDetails, RunDetails]; isComplete: boolean }): JSX.Element {
  const { runs, isComplete } = props;
  const fields = useMemo(() => diffFields(...runs), [runs]);
  const different = fields.filter(({ before, after }) => before !== after);
  return (
    <details class="compare-fields" open>
      <summary>
        {different.length} of {plural(fields.length, 'field')} differ
      </summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: A scrolled region needs keyboard focus. */}
      <section class="scroll" tabIndex={0} data-own-arrows aria-label="Fields and metadata">
        <table>
          <tbody>
            {(isComplete ? fields : different).map(({ name, before, after }) => (
              <tr key={name}>
                <th scope="row">{visibleText(name)}</th>
                <td class={before === after ? '' : 'diff-removed'}>
                  <LongText value={before} />
                </td>
                <td class={before === after ? '' : 'diff-added'}>
                  <LongText value={after} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </details>
  );
}

function PayloadDiff(props: { runs: readonly RunDetails[]; field: Field; isComplete: boolean }): JSX.Element {
  const { runs, field, isComplete } = props;
  const isModelCall = runs.every(({ run_type }) => run_type === 'llm');
  const key = `${runs.map(({ id }) => id).join(' ')} ${field}`;
  const { value, problem } = useLive(key, (signal) => Promise.all(runs.map((run) => payload(run, field, signal))));
  const lines = useMemo(() => (value === undefined ? [] : linesOfPayloads(value, field, isModelCall)), [value]);
  const shown = useMemo(() => (isComplete ? lines : withContext(lines)), [lines, isComplete]);
  const element = useRef<HTMLDivElement>(null);
  const { first, end } = useRowWindow(element, ROW_HEIGHT, shown.length);
  const linesOfKind = (kind: string): number => lines.filter((line) => line.kind === kind).length;
  const removed = linesOfKind('removed');
  const added = linesOfKind('added');
  const summary =
    removed + added === 0
      ? `The ${field} are equal.`
      : `${plural(removed, 'line')} only in the first run, ${plural(added, 'line')} only in the second`;
  return (
    <>
      <p class="note compare-summary" role="status">
        {value === undefined ? (problem ?? 'Loading…') : summary}
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: A scrolled region needs keyboard focus. */}
      <section ref={element} class="diff scroll" tabIndex={0} data-own-arrows aria-label={`Changed ${field}`}>
        <Rows count={shown.length} rowHeight={ROW_HEIGHT} first={first}>
          {shown.slice(first, end).map(({ kind, text }, offset) => (
            <div key={first + offset} class={`diff-line diff-${kind}`}>
              <span class="diff-sign">{SIGNS[kind]}</span>
              {(kind === 'added' || kind === 'removed') && <span class="unseen">{kind}</span>}
              {visibleText(text)}
            </div>
          ))}
        </Rows>
      </section>
    </>
  );
}

/** Compares two conversations by message. Compares other payloads, and payloads with equal messages, as JSON. */
function linesOfPayloads(payloads: readonly unknown[], field: Field, isModelCall: boolean): MessageLine[] {
  const [before, after] = isModelCall ? payloads.map(field === 'inputs' ? messagesOfInputs : messagesOfOutputs) : [];
  const lines = before === undefined || after === undefined ? [] : diffMessages(before, after);
  if (lines.some(({ kind }) => kind !== 'same')) return lines;
  return diffLines(linesOf(payloads[0]), linesOf(payloads[1]));
}

const SIGNS = { same: ' ', message: ' ', removed: '−', added: '+', gap: '⋯' } as const;

/** Replaces equal lines far from any difference with one line that shows their number. */
function withContext(lines: readonly MessageLine[]): ShownLine[] {
  const isNear = new Uint8Array(lines.length);
  for (const [index, { kind }] of lines.entries()) {
    const context = kind === 'message' ? 0 : CONTEXT;
    if (kind !== 'same') isNear.fill(1, Math.max(0, index - context), index + context + 1);
  }
  const shown: ShownLine[] = [];
  for (let index = 0; index < lines.length; index++) {
    if (isNear[index] === 1) shown.push(lines[index] as MessageLine);
    else {
      const next = isNear.indexOf(1, index);
      const count = (next === -1 ? lines.length : next) - index;
      shown.push({ kind: 'gap', text: plural(count, 'equal line') });
      index += count - 1;
    }
  }
  return shown;
}
