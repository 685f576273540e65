import { type Meter, metrics } from '@opentelemetry/api';
import { guard } from '../base/guard.ts';
import { version } from '../base/version.ts';
import type { Checks } from '../config/checker.ts';
import { usableOptions } from '../run/run-options.ts';

/** Options of `observeStats` and `observeRuns`. */
export interface ObserveOptions {
  /**
   * The meter that creates the instruments.
   * @default a meter from the global meter provider
   */
  meter?: Meter;
}

const CHECKS: Checks<ObserveOptions> = {
  meter: ['a meter of OpenTelemetry', (value) => typeof (value as Meter | null)?.createHistogram === 'function'],
};

/** Returns a function that calls `observe` once for a meter, because a second call would double the counts. */
export function oncePerMeter(
  place: string,
  observe: (meter: Meter) => () => void,
): (options?: ObserveOptions) => () => void {
  const observed = new WeakMap<Meter, () => void>();
  const start = (options?: ObserveOptions): (() => void) => {
    const { meter = metrics.getMeter('runspan', version) } = usableOptions(place, options, CHECKS);
    const known = observed.get(meter);
    if (known !== undefined) return known;
    const unobserve = observe(meter);
    const stop = (): void => {
      observed.delete(meter);
      unobserve();
    };
    observed.set(meter, stop);
    return stop;
  };
  return (options) => guard(place, () => start(options)) ?? (() => {});
}
