import {
  type Context,
  propagation,
  type TextMapGetter,
  type TextMapPropagator,
  type TextMapSetter,
} from '@opentelemetry/api';
import { diagnostics } from '../base/diagnostics.ts';
import { guard, ignoreRejection } from '../base/guard.ts';
import type { Checks } from '../base/options.ts';
import { shown } from '../base/text.ts';
import { SUPPRESS_TRACING } from '../base/timers.ts';
import {
  acceptCheck,
  type BaggageContext,
  type BaggageMember,
  baggageMember,
  baggageOf,
  fromHeaders,
  type HeaderField,
  type HeadersLike,
  headerOf,
  keyOf,
  orderToSend,
  parseBaggage,
} from '../run/propagation.ts';
import { usableOptions } from '../run/run-options.ts';
import { runAbove } from './active-spans.ts';
import { withExtracted } from './extracted-run.ts';

/** What `RunPropagator` takes. Everything is optional. */
export interface RunPropagatorOptions {
  /**
   * Whether the headers of incoming messages are read. A function is called for each message with its carrier, for
   * example the request headers. To accept the carrier, it returns `true` synchronously. For other messages, spans
   * start a new trace.
   *
   * @default true
   */
  trust?: boolean | ((carrier: unknown) => boolean);
  /**
   * The fields that spans inherit from incoming messages, in addition to the ids and the sampling decision. List fields only if
   * you trust all callers. @default []
   */
  accept?: readonly HeaderField[];
  /**
   * Whether the tags and metadata of a run are also sent. Instrumentations add headers to every request, even to third parties.
   *
   * @default false
   */
  metadata?: boolean;
}

const checks: Checks<RunPropagatorOptions> = {
  trust: ['true, false or a function', (value) => typeof value === 'boolean' || typeof value === 'function'],
  accept: acceptCheck,
  metadata: ['true or false', (value) => typeof value === 'boolean'],
};

const TRACE = 'runspan-trace';
const BAGGAGE = 'baggage';

/** Characters of a dotted order that are sent, some 69 runs below each other: a server takes 16 KiB of headers in all. */
const ORDER_MAX = 4_096;

/**
 * Carries the run above each request to the process that answers it, for a `CompositePropagator`, after those of W3C:
 * spans that start there because of it are below that run, in one trace. It writes `runspan-trace`, and `runspan-project`
 * and `runspan-sampled` into W3C `baggage`, whose other members it keeps; it reads the same, or `langsmith-trace`. The
 * other process needs a `RunPropagator` as well, and both a `RunSpanProcessor`.
 *
 * Nothing is written with tracing off or suppressed, and of a run so deep in its trace that its order has over 4 096
 * characters; what does not hold is not read. No method throws.
 */
export class RunPropagator implements TextMapPropagator<unknown> {
  readonly #trust: NonNullable<RunPropagatorOptions['trust']>;
  readonly #accept: readonly HeaderField[];
  readonly #withMetadata: boolean;

  constructor(options?: RunPropagatorOptions) {
    const given = usableOptions<RunPropagatorOptions>('RunPropagator', options, checks);
    const { trust = true, accept = [], metadata = false } = given;
    this.#trust = trust;
    this.#accept = accept;
    this.#withMetadata = metadata;
  }

  inject(context: Context, carrier: unknown, setter: TextMapSetter<unknown>): void {
    guard('RunPropagator.inject', () => {
      if (context.getValue(SUPPRESS_TRACING) === true) return;
      const run = runAbove(context);
      const order = orderToSend('RunPropagator', run, ORDER_MAX);
      if (run === undefined || order === undefined) return;
      setter.set(carrier, TRACE, order);
      const told: BaggageContext = this.#withMetadata ? run : { ...run, tags: undefined, metadata: undefined };
      const { key, members } = baggageIn(carrier, order) ?? { key: BAGGAGE, members: membersOf(context) };
      const baggage = baggageOf(told, members);
      if (baggage !== '') setter.set(carrier, key, baggage);
    });
  }

  extract(context: Context, carrier: unknown, getter: TextMapGetter<unknown>): Context {
    const extracted = guard('RunPropagator.extract', () => {
      const headers = { get: (name: string) => headerOf({ [name]: getter.get(carrier, name) }, name) };
      const run = fromHeaders(headers, { accept: this.#accept });
      return run !== undefined && this.#trusts(carrier) ? withExtracted(context, run) : undefined;
    });
    return extracted ?? context;
  }

  fields(): string[] {
    return [TRACE, BAGGAGE];
  }

  #trusts(carrier: unknown): boolean {
    if (typeof this.#trust === 'boolean') return this.#trust;
    const answer: unknown = this.#trust(carrier);
    if (typeof answer === 'boolean') return answer;
    ignoreRejection(answer);
    diagnostics.warnOnce(
      'trust answer',
      `RunPropagator: expected \`trust\` to answer true or false, at once, got ${shown(answer)}; the message is not believed.`,
    );
    return false;
  }
}

/** The baggage that is there; undefined where the carrier does not show what was written into it just now. */
function baggageIn(carrier: unknown, order: string): { key: string; members: BaggageMember[] } | undefined {
  if (typeof carrier !== 'object' || carrier === null) return undefined;
  const headers = carrier as HeadersLike;
  if (headerOf(headers, TRACE) !== order) return undefined;
  // In the spelling of the application it is there once more, where another propagator has written it since.
  const key = Object.hasOwn(headers, BAGGAGE) ? BAGGAGE : (keyOf(headers, BAGGAGE) ?? BAGGAGE);
  const text = headerOf(typeof headers.get === 'function' ? headers : { [key]: Reflect.get(headers, key) }, BAGGAGE);
  return { key, members: parseBaggage(text ?? '') };
}

/** What another propagator has written, as far as the context tells. */
function membersOf(context: Context): BaggageMember[] {
  const entries = propagation.getBaggage(context)?.getAllEntries() ?? [];
  return entries.map(([key, { value, metadata }]) => {
    const { text } = baggageMember(key, value);
    return { key, text: metadata === undefined ? text : `${text};${metadata.toString()}` };
  });
}
