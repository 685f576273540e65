export interface IntakeCount {
  readonly requests: number;
  readonly bytes: number;
  readonly cpuUs: number;
  readonly indexed?: { readonly seconds: number; readonly cpuUs: number };
}

export function intakeFigures(
  count: IntakeCount,
  runs: number,
  driver: { readonly runsPerSecond: number },
): Record<string, number>;
