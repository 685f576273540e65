/** Something that can go wrong, and what is required then. */
export interface Fault {
  readonly number: number;
  readonly fault: string;
  readonly required: string;
  /** What stands for it where a test cannot bring it about. */
  readonly simulated?: string;
}

export interface FaultGroup {
  readonly title: string;
  readonly faults: readonly Fault[];
}

export const groups: readonly FaultGroup[];
export const faults: readonly Fault[];
