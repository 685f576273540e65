import { diagnostics } from '../base/diagnostics.ts';
import { ignoreRejection } from '../base/guard.ts';
import { types } from '../base/node.ts';
import { messageOf } from '../base/text.ts';
import { PlainCheck } from './plain.ts';
import { SecretNames, type Trail } from './secret-names.ts';
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
    this.#finders = patterns.map(({ source, flags }) => new RegExp(source, `${flags.replace(/[dgy]/g, '')}g`));
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
  maskNamed(text: string, trail: Trail): string {
    return this.#texts !== undefined && mayHoldNames(text) ? this.#texts.masked(text, trail) : text;
  }

  /** @internal Returns the mask of a whole value. A replacement function gets only text and numbers. */
  mask(value: unknown, trail: Trail): string {
    const isShown = typeof value === 'string' || typeof value === 'number';
    return this.wantsTrail && !isShown ? MASK : this.#replaced(isShown ? String(value) : '', trail);
  }

  /** @internal Returns the text with the matches of all patterns replaced. */
  maskFound(text: string, trail: Trail): string {
    return this.#finders.reduce(
      (shown, pattern) => shown.replace(pattern, (found) => (found === '' ? '' : this.#replaced(found, trail))),
      text,
    );
  }

  #replaced(found: string, trail: Trail): string {
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

/** One level of a path; a number is an index. */
export type Step = Trail[number];

/** The path of a value: its field and the steps below. An unknown index is undefined. */
export type Way = readonly (Step | undefined)[];

/** Returns a path as a replacement function gets it. */
export function trailOf(way: Way): Step[] {
  return way.map((step) => step ?? '*');
}

/** Follows a path as far as the paths of the redaction lead. */
export function placeOf(root: PathPlace | undefined, way: Way): PathPlace | undefined {
  let place = root;
  for (const step of way) {
    place = place?.step(step);
    if (place === undefined || place.isEnd) return place;
  }
  return place;
}

/** One segment of a parsed path: `*`, `**`, `[*]`, or a dot and the key or index. */
type Segment = string;

/** The fields that a path may begin with, and the number of levels below those that are text or lists. */
const FIELDS: Readonly<Record<string, number | undefined>> = {
  inputs: undefined,
  outputs: undefined,
  events: Number.POSITIVE_INFINITY,
  metadata: undefined,
  error: 0,
  tags: 1,
  name: 0,
  attachments: 1,
};

/** Steps that one place remembers. */
const STEPS_KEPT = 1_000;

/**
 * How far some steps lead along the paths of the redaction. Each place remembers the next places, so the time of a step does
 * not depend on the number of paths.
 */
export class PathPlace {
  /** Whether a path ends here. */
  readonly isEnd: boolean;
  readonly #rests: readonly (readonly Segment[])[];
  readonly #known = new Map<Step | undefined, PathPlace | undefined>();

  private constructor(rests: readonly (readonly Segment[])[]) {
    this.#rests = rests;
    this.isEnd = rests.some((rest) => rest.length === 0);
  }

  /** Returns the place above all fields. Returns undefined if there are no paths. Throws if a path is invalid. */
  static root(paths: readonly string[]): PathPlace | undefined {
    return PathPlace.#at(paths.map(segmentsOf));
  }

  /** Returns the place one level below, or undefined if no path leads there. The step of an unknown index is undefined. */
  step(step: Step | undefined): PathPlace | undefined {
    if (this.#known.has(step)) return this.#known.get(step);
    const rests = this.#rests.filter(([segment]) => segment !== undefined && matches(segment, step));
    const next = PathPlace.#at(rests.map((rest) => (rest[0] === '**' ? rest : rest.slice(1))));
    if (this.#known.size < STEPS_KEPT) this.#known.set(step, next);
    return next;
  }

  static #at(rests: readonly (readonly Segment[])[]): PathPlace | undefined {
    const all = new Map<string, readonly Segment[]>();
    for (const rest of rests) {
      // `**` also matches no level, so the segment after it may match the next step.
      for (let at = 0; at <= rest.length; at++) {
        all.set(JSON.stringify(rest.slice(at)), rest.slice(at));
        if (rest[at] !== '**') break;
      }
    }
    return all.size === 0 ? undefined : new PathPlace([...all.values()]);
  }
}

function matches(segment: Segment, step: Step | undefined): boolean {
  if (segment === '*' || segment === '**') return true;
  if (segment === '[*]') return typeof step !== 'string';
  return step === undefined ? /^\.\d+$/.test(segment) : segment === `.${step}`;
}

/** `key`, `*`, `**`; `[0]`, `[*]`, `["any key"]`. */
const SEGMENT = /(?:^|(?!^)\.)(\*\*|\*|[^.[\]*"\s]+)|\.?\[(\d{1,9}|\*|"(?:[^"\\]|\\.)*")\]/y;

function segmentsOf(path: string): Segment[] {
  const segments: Segment[] = [];
  SEGMENT.lastIndex = 0;
  while (SEGMENT.lastIndex < path.length) {
    const [found, plain, bracketed = ''] = SEGMENT.exec(path) ?? [];
    if (found === undefined) throw new SyntaxError(`${JSON.stringify(path)} is no path`);
    if (plain !== undefined) segments.push(plain.startsWith('*') ? plain : `.${plain}`);
    else segments.push(bracketed === '*' ? '[*]' : `.${JSON.parse(bracketed)}`);
  }
  const [first = ''] = segments;
  if (first !== '*' && first !== '**' && !Object.hasOwn(FIELDS, first.slice(1))) {
    throw new SyntaxError(
      `${JSON.stringify(path)} has to begin with **, * or one of ${Object.keys(FIELDS).join(', ')}`,
    );
  }
  if (leadsNowhere(first, segments.slice(1))) {
    const kinds = 'name and error are text; tags, attachments and events are lists';
    throw new SyntaxError(`${JSON.stringify(path)} leads nowhere: ${kinds}`);
  }
  return segments;
}

/** A path such as `error.message` or `events.kwargs` would mask nothing. */
function leadsNowhere(field: Segment, below: readonly Segment[]): boolean {
  const levels = FIELDS[field.slice(1)];
  if (levels === undefined) return false;
  const steps = below.filter((segment) => segment !== '**');
  const [first] = levels === 1 ? steps : below;
  return steps.length > levels || (first !== undefined && !matches(first, undefined));
}

/** Masks every payload. The last constant of the file, because the classes above must exist. */
export const hideAll: Redaction = new Redaction(undefined);

/** Returns the redaction if none is configured: values under the names of secrets are masked. Compiled at the first call. */
export function defaultRedaction(): Redaction {
  compiledDefault ??= redact();
  return compiledDefault;
}

let compiledDefault: Redaction | undefined;

/** Returns the redaction of an option. Masks everything if the option is not a redaction. */
export function redactionOf(place: string, given: unknown): Redaction {
  if (given === undefined) return defaultRedaction();
  if (given instanceof Redaction) return given;
  diagnostics.error(`${place}: expected \`redact\` to be what redact() gives; every payload is hidden`);
  return hideAll;
}
