interface Work {
  readonly runsPerTurn: number;
  turn(number: number): unknown;
}

interface Pace {
  readonly runsPerSecond?: number;
  readonly isOverlapping?: boolean;
}

export function runLoop(work: Work, pace: Pace, first: number, count: number, turnMs?: Float64Array): Promise<void>;
