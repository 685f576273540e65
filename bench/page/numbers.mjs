/** Formats a number with three significant digits and commas between thousands. Returns a dash for a missing number. */
export function shown(number) {
  if (number === undefined) return '–';
  if (number === 0) return '0';
  const size = Math.abs(number);
  if (size >= 1_000) return String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, ',');
  if (size >= 100) return String(Math.round(number));
  return String(Number(number.toPrecision(3)));
}
