import { diagnostics } from '../base/diagnostics.ts';
import { ignoreRejection } from '../base/guard.ts';
import { messageOf } from '../base/text.ts';
import { PlainCheck } from './plain.ts';
import { types } from './platform.ts';
import { PathPlace, placeOf, type Step, trailOf, type Way } from './redaction-paths.ts';
import { SecretNames } from './secret-names.ts';
import { mayHoldNames, TextSecrets } from './text-secrets.ts';

/** Options of `redact`. All are optional. */
export interface RedactOptions {
  /**
   * Paths of values to mask: `inputs.user.email`, `outputs.**.token`, `events.*.kwargs.x`, `**.email`. A path begins
   * with a field (`inputs`, `outputs`, `events`, `metadata`, `error`, `tags`, `name`, `attachments`); `*` is any key or item,
   * `[*]` any item, `**` any number of levels, `["a.b"]` a key with a dot.
   */
  paths?: readonly string[];
  /**
   * Patterns of text to mask in payloads and their keys, events, errors and stacks, metadata, tags, and the names
   * of runs and attachments. The time of each should be proportional to the text, as with `secretPatterns`.
   */
  patterns?: readonly RegExp[];
  /**
   * The mask: a text, or a function of the matched text and its path. If the function throws or does not return text, the
   * whole field is masked.
   *
   * @default '[Redacted]'
   */
  replace?: string | ((found: string, path: string) => string);
  /** False records values under names such as `authorization`; a list adds names. @default true */
  keys?: boolean | readonly string[];
}

/**
 * Compiles the option `redact` of `configure`, `createExporter` and `recordRuns`. Values are masked once, before a run is
 * queued. If an option is invalid, one line is logged and every payload is masked.
 */
export function redact(options: RedactOptions = {}): Redaction {
  try {
    return new Redaction(partsOf(options));
  } catch (thrown) {
    diagnostics.error(`redact: ${messageOf(thrown)}; every payload is hidden`);
    return hideAll;
  }
}

/** The default mask. */
export const MASK = '[Redacted]';

/** Replaces a field that could not be masked. */
const FAILED = '[Redaction failed]';

type Replacement = string | ((found: string, path: string) => string);

interface RedactionParts {
  readonly names: SecretNames | undefined;
  /** The names for chunks of model output, of which some are called tokens. */
  readonly chunkNames: SecretNames | undefined;
  readonly paths: PathPlace | undefined;
  readonly patterns: readonly RegExp[];
  readonly replacement: Replacement;
}

/** Thrown by a mask that fails. The whole field is masked. */
class RedactionFailure extends Error {}

/** Calls a replacement function. */
type Caller = (replacement: (found: string, path: string) => string, found: string, path: string) => unknown;

let callReplacement: Caller = (replacement, found, path) => replacement(found, path);

/** Sets how replacement functions are called. Tracing is off for them, because a run of theirs would be masked in turn. */
export function callReplacementsBy(caller: Caller): void {
  callReplacement = caller;
}

/**
 * A compiled redaction, made by `redact`. Pass it to `configure`, `createExporter` or `recordRuns`. It has no public
 * members.
 */
export class Redaction {
  /** @internal Every payload is masked, because the options were invalid. */
  readonly hidesAll: boolean;
  /** @internal The place above all fields. Undefined without paths. */
  readonly root: PathPlace | undefined;
  /** @internal Whether the replacement is called with a path. */
  readonly wantsTrail: boolean;
  /** @internal The names whose values are masked. */
  readonly names: SecretNames | undefined;
  /** @internal Finds payloads in which nothing is masked. Undefined if each payload must be searched value by value. */
  readonly plain: PlainCheck | undefined;
  readonly #ofChunks: Redaction;
  readonly #texts: TextSecrets | undefined;
  readonly #keys: PlainCheck;
  readonly #tests: readonly RegExp[];
  readonly #finders: readonly RegExp[];
  readonly #replacement: Replacement;
  #isReplacing = false;

  /** @internal Without parts, everything is masked. */
  constructor(parts: RedactionParts | undefined) {
    const { names, chunkNames, paths, patterns = [], replacement = MASK } = parts ?? {};
    this.hidesAll = parts === undefined;
    this.root = paths;
    this.names = names;
    this.#texts = names && new TextSecrets(names, (value, trail) => this.mask(value, trail));
    this.#tests = patterns.map((pattern) => new RegExp(pattern.source, pattern.flags.replace(/[dgy]/g, '')));
    this.#finders = this.#tests.map((pattern) => new RegExp(pattern.source, `${pattern.flags}g`));
    this.#replacement = replacement;
    this.wantsTrail = typeof replacement === 'function';
    const isByNames = parts !== undefined && paths === undefined && patterns.length === 0 && !this.wantsTrail;
    this.#keys = new PlainCheck(names, this.#texts);
    this.plain = isByNames ? this.#keys : undefined;
    this.#ofChunks =
      parts === undefined || names === chunkNames ? this : new Redaction({ ...parts, names: chunkNames });
  }

  /** @internal The redaction for chunks of model output. */
  get ofChunks(): Redaction {
    return this.#ofChunks;
  }

  /** @internal Whether a key, its value or the items of its value may be masked because of the key's name. */
  isSpecialKey(key: string): boolean {
    return this.#keys.isSpecial(key);
  }

  /** @internal Returns the text with the values under secret names masked, if it is JSON text or contains URLs. */
  maskNamed(text: string, trail: readonly Step[]): string {
    return this.#texts !== undefined && mayHoldNames(text) ? this.#texts.masked(text, trail) : text;
  }

  /** @internal Returns the mask of a whole value. A replacement function gets only text and numbers. */
  mask(value: unknown, trail: readonly Step[]): string {
    const isShown = typeof value === 'string' || typeof value === 'number';
    return this.wantsTrail && !isShown ? MASK : this.#replaced(isShown ? String(value) : '', trail);
  }

  /** @internal Returns the text with the matches of all patterns replaced. */
  maskFound(text: string, trail: readonly Step[]): string {
    if (this.#tests.length === 0 || !this.#tests.some((pattern) => pattern.test(text))) return text;
    return this.#finders.reduce(
      (shown, pattern) => shown.replace(pattern, (found) => (found === '' ? '' : this.#replaced(found, trail))),
      text,
    );
  }

  #replaced(found: string, trail: readonly Step[]): string {
    if (typeof this.#replacement === 'string') return this.#replacement;
    // A replacement that starts a run nevertheless would be called for that run's payloads, without end.
    if (this.#isReplacing) throw new RedactionFailure();
    let answer: unknown;
    this.#isReplacing = true;
    try {
      answer = callReplacement(this.#replacement, found, trail.join('.'));
    } catch {
      throw new RedactionFailure();
    } finally {
      this.#isReplacing = false;
    }
    if (typeof answer === 'string') return answer;
    ignoreRejection(answer);
    throw new RedactionFailure();
  }
}

/** Returns what replaces a field whose mask failed. Returns undefined if `thrown` is another error. */
export function failureText(thrown: unknown): string | undefined {
  if (!(thrown instanceof RedactionFailure)) return undefined;
  diagnostics.warnOnce('redact', 'redact: `replace` threw or did not return text; the field was hidden');
  return FAILED;
}

/** Returns a text outside the payloads (a name, a tag), masked. */
export function shownText(text: string, redaction: Redaction | undefined, way: Way): string {
  if (redaction === undefined) return text;
  // The name of a run is the least that a trace needs.
  if (redaction.hidesAll) return way[0] === 'name' ? text : MASK;
  try {
    const trail = trailOf(way);
    const isMasked = placeOf(redaction.root, way)?.isEnd === true;
    return isMasked ? redaction.mask(text, trail) : redaction.maskFound(redaction.maskNamed(text, trail), trail);
  } catch (thrown) {
    return failureText(thrown) ?? MASK;
  }
}

/** Masks every payload. */
export const hideAll: Redaction = new Redaction(undefined);

const KNOWN: readonly string[] = ['paths', 'patterns', 'replace', 'keys'] satisfies (keyof RedactOptions)[];

function partsOf(options: unknown): RedactionParts {
  if (typeof options !== 'object' || options === null) throw new TypeError('expected the options to be an object');
  const given: Record<string, unknown> = { __proto__: null, ...options };
  for (const key of Object.keys(given)) if (!KNOWN.includes(key)) throw new TypeError(`unknown option \`${key}\``);
  const { paths = [], patterns = [], replace = MASK, keys = true } = given;
  if (!isListOf(paths, (path) => typeof path === 'string'))
    throw new TypeError('expected `paths` to be a list of text');
  if (!isListOf(patterns, types.isRegExp))
    throw new TypeError('expected `patterns` to be a list of regular expressions');
  if (typeof replace !== 'string' && typeof replace !== 'function') {
    throw new TypeError('expected `replace` to be text or a function');
  }
  const names = namesOf(keys);
  return {
    names: names && new SecretNames(names, true),
    chunkNames: names && new SecretNames(names, false),
    paths: PathPlace.root(paths as string[]),
    patterns: patterns as RegExp[],
    replacement: replace as Replacement,
  };
}

function namesOf(keys: unknown): readonly string[] | undefined {
  if (keys === false) return undefined;
  if (keys === true) return [];
  const isName = (key: unknown): boolean => typeof key === 'string' && /[\p{L}\p{N}]/u.test(key);
  if (!isListOf(keys, isName)) throw new TypeError('expected `keys` to be true, false or a list of names');
  return keys as string[];
}

function isListOf(value: unknown, holds: (item: unknown) => boolean): value is readonly unknown[] {
  return Array.isArray(value) && value.every(holds);
}

/** The redaction if none is configured: values under the names of secrets are masked. */
export const defaultRedaction: Redaction = redact();

/** Returns the redaction of an option. Masks everything if the option is not a redaction. */
export function redactionOf(place: string, given: unknown): Redaction {
  if (given === undefined) return defaultRedaction;
  if (given instanceof Redaction) return given;
  diagnostics.error(`${place}: expected \`redact\` to be what redact() gives; every payload is hidden`);
  return hideAll;
}
