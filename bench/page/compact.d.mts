export interface Figure {
  readonly median?: number;
  readonly min?: number;
  readonly max?: number;
  readonly toLimit?: number;
  readonly overUntraced?: number;
}

export interface Row {
  readonly name: string;
  readonly complaint?: string;
  readonly cpuUsPerRun?: Figure;
}

export interface Cell {
  readonly name: string;
  readonly drivers?: readonly Row[];
}

/** What `docs/benchmarks/results.json` holds. */
export interface Results {
  readonly share: number;
  readonly machine: { readonly node: string };
  readonly cells: readonly Cell[];
}

export function compactResults(cells: readonly object[], order: readonly string[]): Results;
export function readResults(text: string): Results;
export function resultsText(results: Results): string;
