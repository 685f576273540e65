import type { Cell, Results } from './compact.mjs';

export function withFigures(text: string, results: Results): string;

export const CHECKED_DRIVERS: readonly string[];

interface MeasuredCells {
  readonly cells: readonly Pick<Cell, 'name' | 'drivers'>[];
}

export function compareRatios(stated: MeasuredCells, measured: MeasuredCells): string[];
