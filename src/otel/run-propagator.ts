import {
  type Context,
  propagation,
  type TextMapGetter,
  type TextMapPropagator,
  type TextMapSetter,
} from '@opentelemetry/api';
import { diagnostics } from '../base/diagnostics.ts';
import { guard, ignoreRejection } from '../base/guard.ts';
import { type Checks, TRUE_OR_FALSE } from '../base/options.ts';
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
import { runAbove } from './live/active-spans.ts';
import { withExtracted } from './live/extracted-run.ts';

/** The options that `RunPropagator` accepts. */
export interface RunPropagatorOptions {
  /**
   * Whether to read headers from incoming messages. A function receives each message's carrier, for example the request
   * headers, and returns `true` synchronously to accept the message. Spans for messages that are not accepted start a
   * new trace.
   *
   * @default true
   */
  trust?: boolean | ((carrier: unknown) => boolean);
  /**
   * Fields that spans inherit from incoming messages, in addition to the ids and the sampling decision. List a field
   * only if you trust all callers, because every caller can then set this field.
   * @default []
   */
  accept?: readonly HeaderField[];
  /**
   * Whether to also send the run's tags and metadata. Off by default, because instrumentations add the headers to every
   * request, even to third parties.
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
 * Maximum length of a dotted order in characters, which is enough for about 69 nested runs. Limited because servers
 * accept only about 16 KiB of headers in total.
 */
const ORDER_MAX = 4_096;

/**
 * Propagates the current run to other processes. Spans that start there become children of the run, in the same trace.
 * Add the propagator to a `CompositePropagator`, after the W3C propagators. Both processes need a `RunPropagator` and a
 * `RunSpanProcessor`. Writes the header `runspan-trace`, and the W3C `baggage` members `runspan-project` and
 * `runspan-sampled`. Other baggage members are kept. Reads the same headers, or `langsmith-trace` instead of
 * `runspan-trace`.
 *
 * Writes nothing if tracing is off or suppressed, or if the run's dotted order exceeds 4 096 characters. Ignores
 * invalid headers. No method throws.
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
      const sent: BaggageContext = this.#withMetadata ? run : { ...run, tags: undefined, metadata: undefined };
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

/** Returns the carrier's baggage. Returns undefined if the carrier cannot be read. */
function baggageIn(carrier: unknown, order: string): { key: string; members: BaggageMember[] } | undefined {
  if (typeof carrier !== 'object' || carrier === null) return undefined;
  const headers = carrier as HeadersLike;
  if (headerOf(headers, TRACE) !== order) return undefined;
  // If another propagator has also written the header with a different spelling, the lower-case header is the latest
  // one.
  const key = Object.hasOwn(headers, BAGGAGE) ? BAGGAGE : (keyOf(headers, BAGGAGE) ?? BAGGAGE);
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
