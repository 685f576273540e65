import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { Button } from '../elements/controls.tsx';
import { costFigure, durationFigure, percent, plural } from '../elements/figures.ts';
import { visibleText } from '../elements/visible-text.ts';
import { type Kind, type RunTree, runKind } from './run-tree.ts';
import type { TraceModel } from './trace-model.ts';

/** How strong the colour of each call is that the costs name. */
const STRENGTHS = ['100%', '66%', '44%', '30%'];
/** Minimum share of a call that the costs name. */
const SHARE_MIN = 0.005;

const NAMES: Readonly<Record<Kind, string>> = { model: 'model calls', tool: 'tools', other: 'between' };

interface Part {
  readonly name: string;
  readonly amount: number;
  readonly class: Kind | 'cost';
  /** How strong the colour of the class is. */
  readonly strength?: string | undefined;
  readonly id?: string;
}

/** Shows which kinds of runs took the time of a trace, and which calls its money. */
export function Went({ model }: { model: TraceModel }): JSX.Element {
  const tree = model.tree.value;
  const times = useMemo(() => partsOfTime(tree), [tree]);
  const costs = useMemo(() => costsOf(tree), [tree]);
  return (
    <div class="went">
      <Strip title="Where the time went" parts={times} print={durationFigure} />
      <Strip title="Where the money went" parts={costs} print={costFigure} select={(id) => model.select(id)} />
      <ul class="legend note">
        <li>
          <span class="swatch path" />
          slowest path
        </li>
        <li>
          <span class="swatch token" />
          first token
        </li>
        {tree.branches.some(({ run }) => run.derived !== undefined) && (
          <li>
            <span class="swatch derived" />
            from the messages: known from two model calls, not recorded
          </li>
        )}
      </ul>
    </div>
  );
}

/** A bar whose parts add up to a whole, with each part in words. */
function Strip(props: {
  title: string;
  parts: readonly Part[];
  print: (amount: number) => string;
  select?: (id: string) => void;
}): JSX.Element | null {
  const { title, print, select } = props;
  const parts = props.parts.filter(({ amount }) => amount > 0);
  const whole = parts.reduce((sum, { amount }) => sum + amount, 0);
  if (whole === 0) return null;
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      <div class="strip" aria-hidden="true">
        {parts.map((part) => (
          <span
            key={part.name}
            class={`kind-${part.class}`}
            style={{ flexGrow: part.amount / whole, '--strength': part.strength }}
          />
        ))}
      </div>
      <ul class="legend">
        {parts.map(({ name, amount, class: part, strength, id }) => (
          <li key={name}>
            <span class={`swatch kind-${part}`} style={{ '--strength': strength }} />
            {id === undefined ? name : <Button text={name} class="link" onClick={() => select?.(id)} />} {print(amount)}{' '}
            <span class="note">{percent(amount, whole)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

/**
 * Splits the time of a trace. A moment belongs to model calls if a model call is open, otherwise to tools if a tool is open,
 * otherwise to none of both. Derived tools do not count, because it is unknown how long they took.
 */
export function partsOfTime({ branches, startMs, endMs }: RunTree): Part[] {
  const edges = branches.flatMap(({ run, startMs: from, endMs: to = from }) => {
    const kind = runKind(run);
    return kind === 'other' || run.derived !== undefined || to <= from
      ? []
      : [
          { at: from, kind, by: 1 },
          { at: to, kind, by: -1 },
        ];
  });
  edges.sort((a, b) => a.at - b.at);
  const open = { model: 0, tool: 0 };
  const spent: Record<Kind, number> = { model: 0, tool: 0, other: 0 };
  let last = startMs;
  for (const { at, kind, by } of edges) {
    spent[open.model > 0 ? 'model' : open.tool > 0 ? 'tool' : 'other'] += at - last;
    open[kind] += by;
    last = at;
  }
  spent.other += endMs - last;
  return (['model', 'tool', 'other'] as const).map((kind) => ({ name: NAMES[kind], amount: spent[kind], class: kind }));
}

/** Splits the cost of a trace by calls, the dearest first. Calls are numbered in the order of the tree. */
export function costsOf({ branches }: RunTree): Part[] {
  const calls = branches.flatMap(({ run }) => {
    const amount = run.usage_counts === false ? 0 : (run.usage?.total_cost ?? 0);
    return amount > 0 ? [{ run, amount }] : [];
  });
  const whole = branches[0]?.dollars ?? 0;
  const parts = calls.map(({ run: { id, name }, amount }, index) => ({
    name: calls.length === 1 ? visibleText(name) : `call ${index + 1}: ${visibleText(name)}`,
    ...{ amount, id },
  }));
  parts.sort((a, b) => b.amount - a.amount);
  const named = parts.filter(({ amount }, index) => index < STRENGTHS.length && amount >= whole * SHARE_MIN);
  const others = parts.slice(named.length).reduce((sum, { amount }) => sum + amount, 0);
  const rest = { name: plural(parts.length - named.length, 'other call'), amount: others };
  const colored = named.map((part, index) => ({ ...part, class: 'cost' as const, strength: STRENGTHS[index] }));
  return [...colored, { ...rest, class: 'other' }];
}
