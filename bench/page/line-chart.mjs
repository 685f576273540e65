/** A line for each series over the same few steps, all of them as far apart. Where a series has no value its line ends. */
import { colourOf, labelOf } from './palette.mjs';
import { linearScale, logScale, shown } from './scale.mjs';
import { dot, legend, line, path, picture, words } from './svg.mjs';

const WIDTH = 760;
const LEFT = 70;
const RIGHT = 20;
const TOP = 50;
const BOTTOM = 300;

/** `series` are `{ name, values }`, a value or undefined for each of `steps`. */
export function lineChart({ title, unit, stepTitle, steps, series, isLog = false }) {
  const numbers = series.flatMap(({ values }) => values.filter((value) => value !== undefined));
  const scale = (isLog ? logScale : linearScale)(numbers, BOTTOM, TOP);
  const xOf = (step) => LEFT + ((step + 0.5) * (WIDTH - LEFT - RIGHT)) / steps.length;
  const marks = [words(0, 36, isLog ? `${unit}, by powers of ten` : unit, { class: 'faint' })];
  for (const tick of scale.ticks) {
    const y = scale.at(tick);
    marks.push(line(LEFT, y, WIDTH - RIGHT, y, { class: 'grid' }));
    marks.push(words(LEFT - 8, y + 4, shown(tick), { class: 'faint', 'text-anchor': 'end' }));
  }
  for (const [at, step] of steps.entries())
    marks.push(words(xOf(at), BOTTOM + 18, shown(step), { 'text-anchor': 'middle' }));
  marks.push(words(WIDTH, BOTTOM + 36, stepTitle, { class: 'faint', 'text-anchor': 'end' }));
  for (const { name, values } of series) {
    const points = values.flatMap((value, at) => (value === undefined ? [] : [[xOf(at), scale.at(value)]]));
    marks.push(path(points, colourOf(name)), ...points.map(([x, y]) => dot(x, y, colourOf(name))));
  }
  const entries = series.map(({ name }) => ({ label: labelOf(name), colour: colourOf(name) }));
  const below = legend(entries, { x: 0, y: BOTTOM + 62, width: WIDTH });
  return picture({ width: WIDTH, height: BOTTOM + 62 + below.height, title }, [...marks, ...below.marks]);
}
