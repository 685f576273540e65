/** A line or a row of bars over pieces of time. */
export interface Series {
  readonly name: string;
  /** One of the classes of the style sheet. */
  readonly tone: 'plain' | 'accent' | 'bad' | 'faint';
  readonly values: readonly (number | undefined)[];
}

/** The next number above that is 1, 2 or 5 with zeros. */
export function roundAbove(value: number): number {
  if (!(value > 0)) return 1;
  const unit = 10 ** Math.floor(Math.log10(value));
  return unit * ([1, 2, 5].find((step) => step * unit >= value) ?? 10);
}

/** Where lines are drawn: breaks where there is no value. */
export function linePath(values: readonly (number | undefined)[], top: number, width: number, height: number): string {
  const step = width / values.length;
  let isDrawing = false;
  return values
    .map((value, index) => {
      if (value === undefined) {
        isDrawing = false;
        return '';
      }
      const point = `${((index + 0.5) * step).toFixed(1)} ${(height - (value / top) * height).toFixed(1)}`;
      // A line to itself is a dot, for a value without neighbours.
      const piece = isDrawing ? `L${point}` : `M${point}L${point}`;
      isDrawing = true;
      return piece;
    })
    .filter((piece) => piece !== '')
    .join('');
}
