import { diagnostics } from '../base/diagnostics.ts';
import { ignoreRejection } from '../base/guard.ts';
import { types } from '../base/node.ts';
import { messageOf } from '../base/text.ts';
import { PlainCheck } from './plain.ts';
import { SecretNames, type Trail } from './secret-names.ts';
import { mayHoldNames, TextSecrets } from './text-secrets.ts';

/** Options of `redact`. Every option is optional. */
export interface RedactOptions {
  /**
   * Paths of values to mask: `inputs.user.email`, `outputs.**.token`, `events.*.kwargs.x`, `**.email`. A path begins
   * with a field (`inputs`, `outputs`, `events`, `metadata`, `error`, `tags`, `name`, `attachments`) or a wildcard. `*`
   * matches any key or item, `[*]` any item, `**` any number of levels, `["a.b"]` a key with a dot.
   */
  paths?: readonly string[];
  /**
   * Patterns to mask in payloads and their keys, events, errors and stacks, metadata, tags, and names of runs and
   * attachments. The time of each pattern should be linear in the text length.
   */
  patterns?: readonly RegExp[];
  /**
   * The mask, or a function that returns the mask for a matched text and its path. If the function throws or does not
   * return text, the whole field is masked.
   *
   * @default '[Redacted]'
   */
  replace?: string | ((found: string, path: string) => string);
  /** True masks values under names such as `authorization`. False does not. A list adds names. @default true */
  keys?: boolean | readonly string[];
}

/**
 * Compiles a value for the option `redact` of `configure`, `createExporter` and `recordRuns`. Values are masked once,
 * before a run is queued. If an option is invalid, one line is logged and every payload is masked.
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

/** Replaces a field if the replacement function fails. */
const FAILED = '[Redaction failed]';

type Replacement = string | ((found: string, path: string) => string);

interface RedactionParts {
  readonly names: SecretNames | undefined;
  /** Names of secrets in chunks of model output. Excludes names such as `token`, which chunks use for text. */
  readonly chunkNames: SecretNames | undefined;
  readonly paths: PathPlace | undefined;
  readonly patterns: readonly RegExp[];
  readonly replacement: Replacement;
}

/** Thrown if the replacement function fails. The whole field is then masked. */
class RedactionFailure extends Error {}

/** Calls a replacement function. */
type Caller = (replacement: (found: string, path: string) => string, found: string, path: string) => unknown;

let callReplacement: Caller = (replacement, found, path) => replacement(found, path);

/** Sets the function that calls replacement functions with tracing off. */
export function callReplacementsBy(caller: Caller): void {
  callReplacement = caller;
}

/** The result of `redact`, for `configure`, `createExporter` or `recordRuns`. The class has no public members. */
export class Redaction {
  /** @internal Whether every payload is masked because the options were invalid. */
  readonly hidesAll: boolean;
  /** @internal The start of the path matcher. Undefined if no paths are configured. */
  readonly root: PathPlace | undefined;
  /** @internal Whether the replacement is a function, which is called with a path. */
  readonly wantsTrail: boolean;
  /** @internal Property names whose values are masked. */
  readonly names: SecretNames | undefined;
  /** @internal Finds payloads that need no masking. Undefined if each value must be examined. */
  readonly plain: PlainCheck | undefined;
  readonly #ofChunks: Redaction;
  readonly #texts: TextSecrets | undefined;
  readonly #keys: PlainCheck;
  readonly #finders: readonly RegExp[];
  readonly #replacement: Replacement;
  #isReplacing = false;

  /** @internal If `parts` is undefined, everything is masked. */
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

  /** @internal Masks values under the names of secrets in JSON text, HTTP headers and URLs. */
  maskNamed(text: string, trail: Trail): string {
    return this.#texts !== undefined && mayHoldNames(text) ? this.#texts.masked(text, trail) : text;
  }

  /** @internal Returns the mask of a whole value. A replacement function is called only for text and numbers. */
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
    // A run that starts here would call the replacement function again for its own payloads, without end.
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

/** Returns the text for a field whose replacement function failed. Undefined if `thrown` is another error. */
export function failureText(thrown: unknown): string | undefined {
  if (!(thrown instanceof RedactionFailure)) return undefined;
  diagnostics.warnOnce('redact', 'redact: `replace` threw or did not return text; the field was hidden');
  return FAILED;
}

/** Masks a text that is not part of a payload, for example a name or a tag. */
export function shownText(text: string, redaction: Redaction | undefined, way: Way): string {
  if (redaction === undefined) return text;
  // Run names are not masked here, because a trace without names is useless.
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

/** One step of a path. A number is the index of an item. */
export type Step = Trail[number];

/** The path of a value, beginning with the field of the run. An unknown index is undefined. */
export type Way = readonly (Step | undefined)[];

/** Converts a path for a replacement function. Replaces an unknown index with `*`. */
export function trailOf(way: Way): Step[] {
  return way.map((step) => step ?? '*');
}

/** Returns the place of a value, or of the parent that a path masks. Undefined if no redaction path can match. */
export function placeOf(root: PathPlace | undefined, way: Way): PathPlace | undefined {
  let place = root;
  for (const step of way) {
    place = place?.step(step);
    if (place === undefined || place.isEnd) return place;
  }
  return place;
}

/** One segment of a redaction path: `*`, `**`, `[*]`, or a dot and a key or index. */
type Segment = string;

/** Fields that a path may begin with, and the maximum number of levels below a field with text or a list. */
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

/** Maximum number of steps that one place caches. */
const STEPS_KEPT = 1_000;

/**
 * The redaction paths that can still match after some steps. Each place caches the next places, so the time of a step
 * does not depend on the number of paths.
 */
export class PathPlace {
  /** Whether a redaction path matches the value at this place. */
  readonly isEnd: boolean;
  readonly #rests: readonly (readonly Segment[])[];
  readonly #known = new Map<Step | undefined, PathPlace | undefined>();

  private constructor(rests: readonly (readonly Segment[])[]) {
    this.#rests = rests;
    this.isEnd = rests.some((rest) => rest.length === 0);
  }

  /** Returns the place above all fields, or undefined if there are no paths. Throws if a path is invalid. */
  static root(paths: readonly string[]): PathPlace | undefined {
    return PathPlace.#at(paths.map(segmentsOf));
  }

  /** Returns the place one level below, or undefined if no path can match. An unknown index is undefined. */
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
      // `**` also matches zero levels, so the segment after `**` may match the next step.
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

/** Matches one segment, for example `key`, `*`, `**`, `[0]`, `[*]` or `["any key"]`. */
const SEGMENT = /(?:^|(?!^)\.)(\*\*|\*|[^.[\]*"\s]+)|\.?\[(\d{1,9}|\*|"(?:[^"\\]|\\.)*")\]/y;

function segmentsOf(path: string): Segment[] {
  const segments: Segment[] = [];
  SEGMENT.lastIndex = 0;
  while (SEGMENT.lastIndex < path.length) {
    const [found, plain, bracketed = ''] = SEGMENT.exec(path) ?? [];
    if (found === undefined) throw new SyntaxError(`${JSON.stringify(path)} is not a valid path`);
    if (plain !== undefined) segments.push(plain.startsWith('*') ? plain : `.${plain}`);
    else segments.push(bracketed === '*' ? '[*]' : `.${JSON.parse(bracketed)}`);
  }
  const [first = ''] = segments;
  if (first !== '*' && first !== '**' && !Object.hasOwn(FIELDS, first.slice(1))) {
    throw new SyntaxError(`${JSON.stringify(path)} must begin with **, * or one of ${Object.keys(FIELDS).join(', ')}`);
  }
  if (leadsNowhere(first, segments.slice(1))) {
    const kinds = 'name and error are text; tags, attachments and events are lists';
    throw new SyntaxError(`${JSON.stringify(path)} cannot match a value: ${kinds}`);
  }
  return segments;
}

/** Whether a path can never match a value, for example `error.message` or `events.kwargs`. */
function leadsNowhere(field: Segment, below: readonly Segment[]): boolean {
  const levels = FIELDS[field.slice(1)];
  if (levels === undefined) return false;
  const steps = below.filter((segment) => segment !== '**');
  const [first] = levels === 1 ? steps : below;
  return steps.length > levels || (first !== undefined && !matches(first, undefined));
}

/** Masks every payload. Must be declared after the classes that the constructor uses. */
export const hideAll: Redaction = new Redaction(undefined);

/** Returns the default redaction, which masks values under the names of secrets. */
export function defaultRedaction(): Redaction {
  compiledDefault ??= redact();
  return compiledDefault;
}

let compiledDefault: Redaction | undefined;

/** Returns the redaction for the option `redact`, or `hideAll` if the option is invalid. */
export function redactionOf(place: string, given: unknown): Redaction {
  if (given === undefined) return defaultRedaction();
  if (given instanceof Redaction) return given;
  diagnostics.error(`${place}: expected \`redact\` to be the result of redact(); every payload is hidden`);
  return hideAll;
}
