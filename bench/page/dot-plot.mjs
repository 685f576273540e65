/**
 * A line for each of some names, with a dot for each value and a stroke from the least to the most that was measured. A name
 * with one value has it written beside its dot; colours are explained where a line has several.
 */
import { colourOf, labelOf } from './palette.mjs';
import { linearScale, logScale, shown } from './scale.mjs';
import { dot, legend, line, picture, words } from './svg.mjs';

const WIDTH = 760;
const LEFT = 200;
const RIGHT = 70;
const TOP = 34;
const ROW = 24;

/** `rows` are `{ label, dots: [{ series, value, min, max }] }`. */
export function dotPlot({ title, unit, rows, isLog = false }) {
  const numbers = rows.flatMap(({ dots }) => dots.flatMap(({ value, min = value, max = value }) => [value, min, max]));
  const scale = (isLog ? logScale : linearScale)(numbers, LEFT, WIDTH - RIGHT);
  const bottom = TOP + rows.length * ROW;
  const marks = scale.ticks.flatMap((tick) => [
    line(scale.at(tick), TOP - 6, scale.at(tick), bottom, { class: 'grid' }),
    words(scale.at(tick), bottom + 16, shown(tick), { class: 'faint', 'text-anchor': 'middle' }),
  ]);
  marks.push(
    words(WIDTH, bottom + 32, isLog ? `${unit}, by powers of ten` : unit, { class: 'faint', 'text-anchor': 'end' }),
  );
  for (const [at, row] of rows.entries()) marks.push(...rowMarks(row, TOP + (at + 0.5) * ROW, scale));
  const series = [...new Set(rows.flatMap(({ dots }) => dots.map((one) => one.series)))];
  const hasLegend = rows.some(({ dots }) => new Set(dots.map((one) => one.series)).size > 1);
  const entries = hasLegend ? series.map((one) => ({ label: labelOf(one), colour: colourOf(one) })) : [];
  const below = legend(entries, { x: 0, y: bottom + 56, width: WIDTH });
  const height = bottom + 40 + (hasLegend ? below.height + 6 : 0);
  return picture({ width: WIDTH, height, title }, [...marks, ...below.marks]);
}

function rowMarks({ label, dots }, y, scale) {
  const marks = [words(LEFT - 12, y + 4, label, { 'text-anchor': 'end' })];
  for (const { series, value, min = value, max = value } of dots) {
    const colour = colourOf(series);
    marks.push(
      line(scale.at(min), y, scale.at(max), y, { stroke: colour, 'stroke-width': 2 }),
      dot(scale.at(value), y, colour),
    );
  }
  if (dots.length === 1) marks.push(words(scale.at(dots[0].max ?? dots[0].value) + 10, y + 4, shown(dots[0].value)));
  return marks;
}
