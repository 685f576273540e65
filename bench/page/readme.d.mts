import type { Results } from './compact.mjs';

export function withFigures(text: string, results: Results): string;
