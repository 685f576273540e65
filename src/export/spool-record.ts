import type { EncodedRun } from '../run/encoded-run.ts';
export interface SpooledRecord {
  readonly op: 'post' | 'patch';
  readonly isEnded: boolean;
  readonly run: EncodedRun;
}
