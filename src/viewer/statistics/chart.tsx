import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { theme } from '../data/preferences.ts';
import { Button } from '../elements/controls.tsx';
import { exact, orDash, timeLabels } from '../elements/figures.ts';
import { Table, type TableColumn } from '../elements/table.tsx';

const HEIGHT = 168;
const FONT = '11px system-ui, sans-serif';
const TABLE_ROWS_MAX = 60;
/** Minimum length of a drag, in pixels. A shorter drag counts as a click. */
const DRAG_PX_MIN = 5;

/** Values over time. The value of an empty bucket is undefined. `color` names a CSS custom property. */
export interface Series {
  readonly name: string;
  readonly color: 'bar' | 'accent' | 'accent-half' | 'bad' | 'amber' | `series-${number}`;
  readonly total: number | undefined;
  readonly values: readonly (number | undefined)[];
}

export interface ChartProps {
  readonly title: string;
  /** Chart type. Bars are stacked. */
  readonly form: 'bars' | 'lines';
  /** Start of each bucket and end of the last bucket, in milliseconds. */
  readonly times: readonly number[];
  readonly endMs: number;
  readonly series: readonly Series[];
  readonly print: (value: number) => string;
  /** Whether the series are a ranking, which is beside the chart. */
  readonly isRanked?: boolean;
  /** Called with the range that the user selects by dragging, or without a range after a double click. */
  readonly zoom: (range?: { fromMs: number; toMs: number }) => void;
}

/** A chart over time. For screen readers and keyboard users, a table contains the same values. */
export function Chart(props: ChartProps): JSX.Element {
  const { title, times, series, print, isRanked = false } = props;
  const element = useRef<HTMLDivElement>(null);
  const hovered = usePlot(element, props);
  const at = hovered === undefined ? undefined : times[hovered];
  return (
    <figure class={isRanked ? 'chart ranked' : 'chart'}>
      <figcaption>
        <h2>{title}</h2>
        <span class="note">{at === undefined ? isRanked && 'most expensive first' : exact(at)}</span>
        <ul class="legend">
          {series.map(({ name, color, values, total }) => (
            <li key={name}>
              <span class="swatch" style={{ background: `var(--${color})` }} />
              <span class="clip" title={name}>
                {name}
              </span>
              <span class="number">{orDash(hovered === undefined ? total : values[hovered], print)}</span>
            </li>
          ))}
        </ul>
      </figcaption>
      <div ref={element} role="img" aria-label={`${title}. ${series.map((one) => summaryOf(one, print)).join('; ')}`} />
      <details>
        <summary>As a table</summary>
        <ChartTable {...props} />
      </details>
    </figure>
  );
}

/** Draws a chart into an element. Returns the index of the bucket under the pointer. */
function usePlot(element: { current: HTMLDivElement | null }, props: ChartProps): number | undefined {
  const [hovered, setHovered] = useState<number>();
  const plot = useRef<uPlot | undefined>(undefined);
  const latest = useRef(props);
  latest.current = props;
  useEffect(() => {
    const target = element.current;
    if (target === null) return;
    const created = new uPlot(optionsOf(target, latest, setHovered), dataOf(latest.current), target);
    plot.current = created;
    const redraw = (): void => created.redraw();
    const resizing = new ResizeObserver(() => created.setSize({ width: target.clientWidth, height: HEIGHT }));
    resizing.observe(target);
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    scheme.addEventListener('change', redraw);
    const unsubscribe = theme.subscribe(redraw);
    return () => {
      unsubscribe();
      scheme.removeEventListener('change', redraw);
      resizing.disconnect();
      created.destroy();
    };
  }, []);
  useEffect(() => plot.current?.setData(dataOf(props)), [props.times, props.series]);
  return hovered;
}

function optionsOf(
  target: HTMLElement,
  latest: { readonly current: ChartProps },
  setHovered: (index: number | undefined) => void,
): uPlot.Options {
  const { form, series } = latest.current;
  // A canvas needs computed colours, which change with the theme.
  const color = (name: string) => (): string => {
    target.style.color = `var(--${name})`;
    return getComputedStyle(target).color;
  };
  const axis: uPlot.Axis = {
    stroke: color('muted'),
    font: FONT,
    ticks: { show: false },
    grid: { stroke: color('line'), width: 1 },
  };
  return {
    width: target.clientWidth,
    height: HEIGHT,
    padding: [8, 8, 0, 0],
    ms: 1,
    legend: { show: false },
    scales: {
      x: { range: () => [latest.current.times[0] ?? 0, latest.current.endMs] },
      y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] },
    },
    axes: [
      { ...axis, size: 22, grid: { show: false }, values: (_, splits) => timeLabels(splits) },
      { ...axis, size: 56, values: (_, splits) => splits.map((value) => latest.current.print(value)) },
    ],
    // Reverse the series, so that the bar with the sum is drawn first and its parts in front of it.
    series: [{}, ...[...series].reverse().map((one) => seriesOptions(form, color(one.color)))],
    cursor: {
      y: false,
      points: { show: false },
      drag: { setScale: false, dist: DRAG_PX_MIN },
      bind: {
        dblclick: () => () => {
          latest.current.zoom();
          return null;
        },
      },
    },
    hooks: {
      // `cursor.idx` is the index of the closest bucket start. In the right half of a bar, the next bucket is closer.
      setCursor: [
        (plot) => {
          const { left = -1 } = plot.cursor;
          const atMs = plot.posToVal(left, 'x');
          setHovered(left < 0 ? undefined : latest.current.times.findLastIndex((time) => time <= atMs));
        },
      ],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          if (width === 0) return;
          latest.current.zoom({ fromMs: plot.posToVal(left, 'x'), toMs: plot.posToVal(left + width, 'x') });
        },
      ],
    },
  };
}

function seriesOptions(form: ChartProps['form'], color: () => string): uPlot.Series {
  if (form === 'lines')
    return { stroke: color, width: 1.8, spanGaps: true, points: { show: true, size: 4, fill: color } };
  const paths = uPlot.paths.bars?.({ align: 1, size: [0.8] });
  return { fill: color, width: 0, points: { show: false }, ...(paths === undefined ? {} : { paths }) };
}

function dataOf({ form, times, series }: ChartProps): uPlot.AlignedData {
  const columns: (number | null)[][] = [];
  for (const { values } of series) {
    const below = form === 'bars' ? columns[0] : undefined;
    columns.unshift(
      values.map((value, index) => (below === undefined ? (value ?? null) : (value ?? 0) + (below[index] ?? 0))),
    );
  }
  return [[...times], ...columns];
}

function ChartTable({ series, times, endMs, print, zoom }: ChartProps): JSX.Element {
  const rows = [...times.keys()].filter((index) => series.some(({ values }) => (values[index] ?? 0) !== 0));
  const timeOf = (index: number): JSX.Element => {
    const range = { fromMs: times[index] ?? 0, toMs: times[index + 1] ?? endMs };
    return (
      <Button text={exact(range.fromMs)} class="link" title="Show only this time range" onClick={() => zoom(range)} />
    );
  };
  const columns: TableColumn<number>[] = [
    { name: 'From', cell: timeOf },
    ...series.map(({ name, values }) => ({ name, cell: (index: number) => orDash(values[index], print) })),
  ];
  return <Table columns={columns} items={rows.slice(-TABLE_ROWS_MAX)} keyOf={String} />;
}

function summaryOf({ name, values }: Series, print: ChartProps['print']): string {
  const known = values.filter((value) => value !== undefined);
  return `${name}: ${known.length === 0 ? 'none' : `at most ${print(Math.max(...known))}`}`;
}
