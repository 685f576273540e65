/** Where a number stands on an axis, and which numbers are written beside it. */

/** From 0 upwards, in even steps. */
export function linearScale(values, from, to) {
  const top = Math.max(...values, 1e-9);
  const step = niceStep(top / 5);
  const end = Math.ceil(top / step) * step;
  const ticks = Array.from({ length: Math.round(end / step) + 1 }, (_, at) => at * step);
  return { at: (value) => from + ((to - from) * Math.max(0, value)) / end, ticks };
}

/** By powers of ten: what lies at or below 0 stands at the lower end. */
export function logScale(values, from, to) {
  const positive = values.filter((value) => value > 0);
  const low = Math.floor(Math.log10(Math.min(...positive)));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...positive))));
  const position = (value) => (Math.log10(Math.max(value, 10 ** low)) - low) / (high - low);
  const steps = high - low <= 2 ? [1, 2, 5] : [1];
  const ticks = Array.from({ length: high - low }, (_, at) => steps.map((step) => step * 10 ** (low + at))).flat();
  return { at: (value) => from + (to - from) * position(value), ticks: [...ticks, 10 ** high] };
}

/** Three digits that count, thousands apart. */
export function shown(number) {
  if (number === 0) return '0';
  const size = Math.abs(number);
  if (size >= 1_000) return String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, ' ');
  if (size >= 100) return String(Math.round(number));
  return String(Number(number.toPrecision(3)));
}

function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough);
}
