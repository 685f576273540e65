import {
  type Context,
  propagation,
  type TextMapGetter,
  type TextMapPropagator,
  type TextMapSetter,
} from '@opentelemetry/api';
import { diagnostics } from '../base/diagnostics.ts';
import { guard, ignoreRejection } from '../base/guard.ts';
import { shown } from '../base/text.ts';
import { type Checks, TRUE_OR_FALSE } from '../config/checker.ts';
import { SUPPRESS_TRACING } from '../platform/suppress-tracing.ts';
import {
  acceptCheck,
  type BaggageMember,
  baggageMember,
  baggageOf,
  fromHeaders,
  type HeaderField,
  type HeadersLike,
  headerKey,
  headerOf,
  orderToSend,
  parseBaggage,
  withAddedFields,
} from '../run/propagation/propagation.ts';
import { usableOptions } from '../run/run-options.ts';
import { runAbove } from './live/active-spans.ts';
import { withExtracted } from './live/extracted-run.ts';

/** Options of `RunPropagator`. */
export interface RunPropagatorOptions {
  /**
   * Whether to read headers from incoming messages. A function receives the carrier of each message, for example the
   * request headers. To accept the message, the function must return `true` synchronously. Spans for rejected messages
   * start a new trace.
   *
   * @default true
   */
  trust?: boolean | ((carrier: unknown) => boolean);
  /**
   * Fields that spans inherit from incoming messages, besides the ids and the sampling decision. Any caller can set the
   * listed fields, so list a field only if you trust all callers.
   * @default []
   */
  accept?: readonly HeaderField[];
  /**
   * Whether to also send the tags and metadata of the run. Off by default, because instrumentations add the headers to
   * all requests, even to third parties.
   *
   * @default false
   */
  metadata?: boolean;
}

const checks: Checks<RunPropagatorOptions> = {
  trust: ['true, false or a function', (value) => typeof value === 'boolean' || typeof value === 'function'],
  accept: acceptCheck,
  metadata: TRUE_OR_FALSE,
};

const TRACE = 'runspan-trace';
const BAGGAGE = 'baggage';

/**
 * Maximum length of a `dotted_order` in characters, enough for about 69 nested runs. Servers accept only about 16 KiB
 * of headers in total.
 */
const ORDER_MAX = 4_096;

/**
 * Propagates the current run to other processes. Spans in those processes become children of the run, in the same
 * trace. Add the propagator to a `CompositePropagator`, after the W3C propagators. Both processes need a
 * `RunPropagator` and a `RunSpanProcessor`. The propagator writes the header `runspan-trace`, and the W3C `baggage`
 * members `runspan-project`, `runspan-sampled` and `runspan-held`. Other baggage members are kept. The propagator reads
 * the same headers, and accepts `langsmith-trace` instead of `runspan-trace`.
 *
 * If tracing is off or suppressed, no headers are written. The same applies if the run's `dotted_order` exceeds 4,096
 * characters. Invalid headers are ignored. The methods never throw.
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
      const sent = this.#withMetadata ? withAddedFields(run) : { ...run, tags: undefined, metadata: undefined };
      const { key, members } = baggageIn(carrier, order) ?? { key: BAGGAGE, members: membersOf(context) };
      const baggage = baggageOf(sent, members);
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
      `RunPropagator: expected \`trust\` to return true or false synchronously, got ${shown(answer)}; the headers are ignored.`,
    );
    return false;
  }
}

/** Returns the baggage in a carrier. Returns undefined if the carrier cannot be read. */
function baggageIn(carrier: unknown, order: string): { key: string; members: BaggageMember[] } | undefined {
  if (typeof carrier !== 'object' || carrier === null) return undefined;
  const headers = carrier as HeadersLike;
  if (headerOf(headers, TRACE) !== order) return undefined;
  // If the header exists in several spellings, the lower-case header was written last.
  const key = Object.hasOwn(headers, BAGGAGE) ? BAGGAGE : (headerKey(headers, BAGGAGE) ?? BAGGAGE);
  const text = headerOf(typeof headers.get === 'function' ? headers : { [key]: Reflect.get(headers, key) }, BAGGAGE);
  return { key, members: parseBaggage(text ?? '') };
}

function membersOf(context: Context): BaggageMember[] {
  const entries = propagation.getBaggage(context)?.getAllEntries() ?? [];
  return entries.map(([key, { value, metadata }]) => {
    const { text } = baggageMember(key, value);
    return { key, text: metadata === undefined ? text : `${text};${metadata.toString()}` };
  });
}
