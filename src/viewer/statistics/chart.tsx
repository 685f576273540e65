import type { JSX } from 'preact';
import { linePath, roundAbove, type Series } from './chart-path.ts';

const WIDTH = 600;
const HEIGHT = 120;
/** Rows of the table that stands for a chart. */
const ROWS_MAX = 60;

/** A chart over time, and the same as a table for whoever does not see it. */
export function Chart({
  title,
  series,
  times,
  form,
  print,
}: {
  title: string;
  series: readonly Series[];
  /** When each piece of time begins. */
  times: readonly string[];
  form: 'bars' | 'lines';
  print: (value: number) => string;
}): JSX.Element {
  const top = roundAbove(highest(series, form));
  const said = series.map(({ name, values }) => summaryOf(name, values, print)).join('; ');
  return (
    <figure class="chart">
      <figcaption>
        <h3>{title}</h3>
        <ul class="legend">
          {series.map(({ name, tone }) => (
            <li key={name}>
              <span class={`swatch swatch-${form} tone-${tone}`} />
              {name}
            </li>
          ))}
        </ul>
      </figcaption>
      <div class="chart-body">
        <div class="chart-axis" aria-hidden="true">
          <span>{print(top)}</span>
          <span>{print(top / 2)}</span>
          <span>0</span>
        </div>
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={`${title}. ${said}`}>
          <path class="grid-line" d={`M0 0.5H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT - 0.5}H${WIDTH}`} />
          {form === 'bars' ? <Bars series={series} top={top} /> : <Lines series={series} top={top} />}
          {times.map((time, index) => (
            <rect
              key={time}
              class="chart-hit"
              x={(index * WIDTH) / times.length}
              y={0}
              width={WIDTH / times.length}
              height={HEIGHT}
            >
              <title>{[time, ...series.map((one) => toldAt(one, index, print))].join('\n')}</title>
            </rect>
          ))}
        </svg>
      </div>
      <div class="chart-times" aria-hidden="true">
        <span>{times[0]}</span>
        <span>{times.at(-1)}</span>
      </div>
      <details>
        <summary>as a table</summary>
        <ChartTable series={series} times={times} print={print} />
      </details>
    </figure>
  );
}

function Bars({ series, top }: { series: readonly Series[]; top: number }): JSX.Element {
  const count = series[0]?.values.length ?? 1;
  const width = WIDTH / count;
  const bases = new Array<number>(count).fill(0);
  return (
    <>
      {series.map(({ name, tone, values }) =>
        values.map((value = 0, index) => {
          const height = (value / top) * HEIGHT;
          const base = bases[index] ?? 0;
          bases[index] = base + height;
          if (height === 0) return null;
          return (
            <rect
              key={`${name} ${index}`}
              class={`tone-${tone}`}
              x={index * width + width * 0.1}
              y={HEIGHT - base - height}
              width={width * 0.8}
              height={height}
            />
          );
        }),
      )}
    </>
  );
}

function Lines({ series, top }: { series: readonly Series[]; top: number }): JSX.Element {
  return (
    <>
      {series.map(({ name, tone, values }) => (
        <path key={name} class={`chart-line tone-${tone}`} d={linePath(values, top, WIDTH, HEIGHT)} />
      ))}
    </>
  );
}

function ChartTable({
  series,
  times,
  print,
}: {
  series: readonly Series[];
  times: readonly string[];
  print: (value: number) => string;
}): JSX.Element {
  const rows = [...times.keys()].filter((index) => series.some(({ values }) => (values[index] ?? 0) !== 0));
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">From</th>
          {series.map(({ name }) => (
            <th key={name} scope="col">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.slice(-ROWS_MAX).map((index) => (
          <tr key={index}>
            <th scope="row">{times[index]}</th>
            {series.map(({ name, values }) => (
              <td key={name}>{values[index] === undefined ? '–' : print(values[index])}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function highest(series: readonly Series[], form: 'bars' | 'lines'): number {
  const count = series[0]?.values.length ?? 0;
  let top = 0;
  for (let index = 0; index < count; index++) {
    const values = series.map((one) => one.values[index] ?? 0);
    top = Math.max(top, form === 'bars' ? values.reduce((sum, value) => sum + value, 0) : Math.max(...values));
  }
  return top;
}

function summaryOf(name: string, values: Series['values'], print: (value: number) => string): string {
  const told = values.filter((value) => value !== undefined);
  return told.length === 0 ? `${name}: none` : `${name}: at most ${print(Math.max(...told))}`;
}

function toldAt({ name, values }: Series, index: number, print: (value: number) => string): string {
  const value = values[index];
  return `${name}: ${value === undefined ? '–' : print(value)}`;
}
