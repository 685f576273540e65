export interface Figure {
  readonly median?: number;
  readonly min?: number;
  readonly max?: number;
  readonly toLimit?: number;
  readonly toOtlp?: number;
  readonly toTraceable?: number;
  readonly overUntraced?: number;
}

/** The figures of a driver, or why they do not count. */
export type Row = { readonly name: string; readonly complaint?: string } & {
  readonly cpuUsPerRun?: Figure;
  readonly runsPerSecond?: Figure;
};

export interface Cell {
  readonly name: string;
  readonly title: string;
  readonly rounds?: number;
  readonly measured: {
    readonly on: string;
    readonly runspan: string;
    readonly node: string;
    readonly cores: number;
    readonly cpu: string;
    readonly platform: string;
  };
  readonly drivers?: readonly Row[];
  readonly figures?: readonly object[];
}

export interface NodeResults {
  readonly versions: Readonly<Record<string, string>>;
  readonly cells: readonly Cell[];
}

/** By the major version of Node. */
export type Results = Readonly<Record<string, NodeResults>>;

export function compactResults(cells: readonly object[], order: readonly string[], committed?: Results): Results;
export function resultsText(results: Results): string;
export function readResults(text: string): Results;
