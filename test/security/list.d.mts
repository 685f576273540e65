/** A line of the list; `later` says why there is no test yet. */
export interface Line {
  readonly number: number;
  readonly rule: string;
  readonly later?: string;
}

export const lines: readonly Line[];
