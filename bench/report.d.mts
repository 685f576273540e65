import type { Row } from './page/compact.mjs';
import type { Round } from './summary.mjs';

export function besideOtlp(rows: readonly Row[], rounds: readonly Round[]): string;
