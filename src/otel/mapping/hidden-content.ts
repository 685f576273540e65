import { diagnostics } from '../../base/diagnostics.ts';
import { cut } from '../../base/text.ts';
import { matcherOf } from '../../config/checker.ts';
import type { Fields } from '../../payload/fields.ts';
import { clearTimer, setTimer } from '../../platform/timers.ts';
import type { CapturePolicy } from '../../run/sink.ts';
import { NO_CONTENT } from '../conventions/no-content.ts';
import type { Attributes } from '../conventions/values.ts';
import { unwatchEnd, watchForEnd } from '../live/flushing.ts';
import { carriesInputs, carriesOutputs } from './message-events.ts';
import type { RowIndex } from './row-index.ts';

type Policy = Pick<CapturePolicy, 'hideInputs' | 'hideOutputs' | 'isKept'>;

/** The metadata key of the number of attributes that were left out because they may contain content. */
export const HIDDEN_ATTRIBUTES = 'hidden_attributes';

/** The tables read token counts in it, but it may also contain the tokens of the answer. */
const PROVIDER_METADATA = 'ai.response.providerMetadata';

const hasNoContent = matcherOf(NO_CONTENT);

/** Returns undefined if nothing is hidden, so that the attributes of a span need not be checked. */
export function hiddenContent(policy: Policy, index: RowIndex): HiddenContent | undefined {
  return policy.hideInputs || policy.hideOutputs ? new HiddenContent(policy, index) : undefined;
}

/**
 * Decides which attributes of a span are recorded although its inputs or outputs are hidden: numbers, booleans, and those
 * of known names. A library may put content under any other name.
 */
export class HiddenContent {
  /** Number of attributes that were left out because their names are unknown. */
  count = 0;
  readonly #policy: Policy;
  readonly #index: RowIndex;

  constructor(policy: Policy, index: RowIndex) {
    this.#policy = policy;
    this.#index = index;
  }

  /** What is hidden, as a key: 1 for inputs, 2 for outputs, 3 for both. */
  get sides(): number {
    return Number(this.#policy.hideInputs) + 2 * Number(this.#policy.hideOutputs);
  }

  /** Returns whether an attribute is left out. Counts it if its name is unknown. */
  hides(name: string, value: unknown): boolean {
    if (this.#isPayload(name) || name === HIDDEN_ATTRIBUTES) return true;
    if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint') return false;
    if (name !== PROVIDER_METADATA && (this.#index.isNamed(name) || isOfEvents(name))) return false;
    if (hasNoContent(name) || this.#policy.isKept?.(name) === true) return false;
    this.count++;
    note(name);
    return true;
  }

  shown(attributes: Attributes = {}): Attributes {
    return Object.fromEntries(Object.entries(attributes).filter(([name, value]) => !this.hides(name, value)));
  }

  /** Returns the attributes of an event that are recorded. All attributes of a message belong to one side. */
  shownOfEvent(event: string, attributes: Attributes): Attributes {
    if (this.#isPayload(event)) return {};
    if (!isOfEvents(event) && !this.#index.isPayload(event)) return this.shown(attributes);
    return Object.fromEntries(Object.entries(attributes).filter(([name]) => !this.#isPayload(name)));
  }

  /** Returns the parameters of a call that are recorded. One attribute may contain a whole request, with instructions. */
  shownParameters(parameters: Fields): Fields {
    const isShown = ([key, value]: [string, unknown]): boolean =>
      this.#index.isParameter(key) || !this.hides(`ls_invocation_params.${key}`, value);
    return Object.fromEntries(Object.entries(parameters).filter(isShown));
  }

  /** The number of attributes that were left out as a pair of metadata, with a comma after it. */
  get countJson(): string {
    return this.count === 0 ? '' : `"${HIDDEN_ATTRIBUTES}":${this.count},`;
  }

  /** Adds the number of attributes that were left out to metadata of JSON texts. */
  addCount(metadata: Map<string, string>): void {
    const before = Number(metadata.get(HIDDEN_ATTRIBUTES)) || 0;
    if (this.count > 0) metadata.set(HIDDEN_ATTRIBUTES, String(before + this.count));
  }

  #isPayload(name: string): boolean {
    const { hideInputs, hideOutputs } = this.#policy;
    return (
      (hideInputs && (this.#index.isPayload(name, 'inputs') || carriesInputs(name))) ||
      (hideOutputs && (this.#index.isPayload(name, 'outputs') || carriesOutputs(name)))
    );
  }
}

function isOfEvents(name: string): boolean {
  return carriesInputs(name) || carriesOutputs(name);
}

/** Maximum number of names in the log line, and of characters in a name. */
const NAMES_MAX = 50;
const NAME_CHARACTERS_MAX = 100;

/** Most libraries have set all of their attributes by then. */
const REPORT_AFTER_MS = 10_000;

const names = new Set<string>();
let timer: NodeJS.Timeout | undefined;

function note(name: string): void {
  if (names.size >= NAMES_MAX) return;
  names.add(cut(name, NAME_CHARACTERS_MAX));
  if (timer !== undefined) return;
  timer = setTimer(reportHiddenNames, REPORT_AFTER_MS).unref();
  watchForEnd(reportHiddenNames);
}

/** Logs the names of the attributes that were left out so far, once per program. */
export function reportHiddenNames(): void {
  clearTimer(timer);
  unwatchEnd(reportHiddenNames);
  if (names.size === 0) return;
  diagnostics.warnOnce(
    'hidden attributes',
    `\`hideInputs\` and \`hideOutputs\` leave out attributes that may contain content: ${[...names].join(', ')}; name those that contain none in \`keepAttributes\`.`,
  );
  names.clear();
}
