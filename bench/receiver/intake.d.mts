import type { Store } from '../../src/receiver.ts';
import type { Arrivals } from '../sink/arrivals.mjs';

export class Intake {
  constructor(
    store: Pick<Store, 'apply'>,
    totals: () => Promise<{ readonly runs: number; readonly pending: number }>,
    isSimple?: boolean,
  );
  /** Stops counting. */
  close(): void;
  reset(): Promise<void>;
  count(): Promise<
    Omit<Arrivals['summary'], 'payloadBytes'> & {
      readonly requests: number;
      readonly bytes: number;
      readonly cpuUs: number;
    }
  >;
}
