import { guard } from '../base/guard.ts';
import type { SpanEntry } from './span-registry.ts';

/**
 * What stands for a span that starts without attributes, as those of OpenInference do: they set them right after. It is
 * made when somebody asks, a child or the end of the span, or else when the code that has started the span has come to
 * its end.
 */
export class LateEntry {
  #make: (() => SpanEntry) | undefined;
  #made: SpanEntry | undefined;

  constructor(make: () => SpanEntry) {
    this.#make = make;
    queueMicrotask(() => void this.made());
  }

  made(): SpanEntry | undefined {
    const make = this.#make;
    this.#make = undefined;
    if (make !== undefined) this.#made = guard('RunSpanProcessor.onStart', make);
    return this.#made;
  }
}
