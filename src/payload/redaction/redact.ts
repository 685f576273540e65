import { diagnostics } from '../../base/diagnostics.ts';
import { ignoreRejection } from '../../base/guard.ts';
import { shareInstances } from '../../base/shared.ts';
import { messageOf } from '../../base/text.ts';
import { type Checks, checkedOptions } from '../../config/checker.ts';
import { types } from '../../platform/node.ts';
import { PlainCheck } from '../plain.ts';
import { nameWords, SecretNames } from './names.ts';
import { matcherAt, PathMatcher, type Trail, trailOf, type ValuePath } from './paths.ts';
import { mayHoldNames, TextSecrets } from './text.ts';

/** Options of `redact`. */
export interface RedactOptions {
  /**
   * Paths of the values to mask, for example `inputs.user.email`, `outputs.**.token`, `events.*.kwargs.x` or
   * `**.email`. A path begins with a wildcard or one of these fields: `inputs`, `outputs`, `events`, `metadata`,
   * `error`, `tags`, `name`, `attachments`. `*` matches any key or item, and `[*]` matches any item. `**` matches any
   * number of levels. `["a.b"]` matches a key that contains a dot.
   */
  paths?: readonly string[];
  /**
   * Patterns for text to mask. Patterns apply to the keys and values of payloads, events and metadata. Patterns also
   * apply to errors, tags, run names and attachment names. Each pattern should run in linear time.
   */
  patterns?: readonly RegExp[];
  /**
   * The mask, or a function that returns the mask. The function receives the text to mask and the path of the text. If
   * the function throws or does not return a string, the whole field is masked.
   *
   * @default '[Redacted]'
   */
  replace?: string | ((found: string, path: string) => string);
  /**
   * Whether to mask the values of keys such as `authorization`. Pass a list to add keys to the built-in keys.
   * @default true
   */
  keys?: boolean | readonly string[];
}

/**
 * Creates redaction rules for the `redact` option of `configure`, `createExporter` and `recordRuns`. Values are masked
 * before a run is queued. If an option is invalid, an error is logged and every payload is masked.
 */
export function redact(options: RedactOptions = {}): Redaction {
  try {
    return new Redaction(partsOf(options));
  } catch (thrown) {
    diagnostics.error(`redact: ${messageOf(thrown)}; every payload is hidden`);
    return hideAll;
  }
}

export const MASK = '[Redacted]';

const FAILED = '[Redaction failed]';

type Replacement = string | ((found: string, path: string) => string);

interface RedactionParts {
  readonly names: SecretNames | undefined;
  /** Names of secrets in chunks of model output. Excludes `token`, because in a chunk this key holds text. */
  readonly chunkNames: SecretNames | undefined;
  readonly paths: PathMatcher | undefined;
  readonly patterns: readonly RegExp[];
  readonly replacement: Replacement;
}

/** Thrown if the replacement function fails, so that the caller masks the whole field. */
class RedactionFailure extends Error {}

type Caller = (replacement: (found: string, path: string) => string, found: string, path: string) => unknown;

let callReplacement: Caller = (replacement, found, path) => replacement(found, path);

/** Sets a function that calls replacement functions with tracing off. */
export function callReplacementsBy(caller: Caller): void {
  callReplacement = caller;
}

/** The redaction rules created by `redact`. Pass the rules as the `redact` option. The class has no public members. */
export class Redaction {
  /** @internal Whether every payload is masked because the options were invalid. */
  readonly hidesAll: boolean;
  /** @internal Undefined if no paths are configured. */
  readonly root: PathMatcher | undefined;
  /** @internal Whether the replacement is a function, which receives each value's path. */
  readonly wantsTrail: boolean;
  /** @internal */
  readonly names: SecretNames | undefined;
  /** @internal Finds payloads that need no masking. Undefined if every value must be examined. */
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
    const isForChunks = parts === undefined || names === chunkNames;
    this.#ofChunks = isForChunks ? this : new Redaction({ ...parts, names: chunkNames });
  }

  /**
   * @internal The redaction rules for chunks of model output. This is a getter, because a field could contain the
   * object itself, and JSON cannot contain cycles.
   */
  get ofChunks(): Redaction {
    return this.#ofChunks;
  }

  /** @internal Whether the key's name requires a check of the key, its value or the items of its value. */
  isSpecialKey(key: string): boolean {
    return this.#keys.isSpecial(key);
  }

  /** @internal Masks the values of named secrets in JSON text, HTTP headers and URLs. */
  maskNamed(text: string, trail: Trail): string {
    return this.#texts !== undefined && mayHoldNames(text) ? this.#texts.masked(text, trail) : text;
  }

  /** @internal Returns the mask for a value. Calls a replacement function only for strings and numbers. */
  mask(value: unknown, trail: Trail): string {
    const isShown = typeof value === 'string' || typeof value === 'number';
    return this.wantsTrail && !isShown ? MASK : this.#replaced(isShown ? String(value) : '', trail);
  }

  /** @internal Masks the matches of all patterns. */
  maskFound(text: string, trail: Trail): string {
    return this.#finders.reduce(
      (shown, pattern) => shown.replace(pattern, (found) => (found === '' ? '' : this.#replaced(found, trail))),
      text,
    );
  }

  #replaced(found: string, trail: Trail): string {
    if (typeof this.#replacement === 'string') return this.#replacement;
    // If the replacement function started a run, the run would call the function again in an endless loop.
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

shareInstances({ Redaction });

export function failureText(thrown: unknown): string | undefined {
  if (!(thrown instanceof RedactionFailure)) return undefined;
  diagnostics.warnOnce('redact', 'redact: `replace` threw or did not return a string; the field was hidden');
  return FAILED;
}

/** Masks text outside of payloads, for example the name or a tag of a run. */
export function shownText(text: string, redaction: Redaction | undefined, path: ValuePath): string {
  if (redaction === undefined) return text;
  // Run names stay visible, because a trace without names is useless.
  if (redaction.hidesAll) return path[0] === 'name' ? text : MASK;
  if (redaction.plain !== undefined && !mayHoldNames(text)) return text;
  try {
    const trail = trailOf(path);
    const isMasked = matcherAt(redaction.root, path)?.isMatch === true;
    return isMasked ? redaction.mask(text, trail) : redaction.maskFound(redaction.maskNamed(text, trail), trail);
  } catch (thrown) {
    return failureText(thrown) ?? MASK;
  }
}

const CHECKS: Checks<RedactOptions> = {
  paths: ['a list of strings', (value) => isListOf(value, (path) => typeof path === 'string')],
  patterns: ['a list of regular expressions', (value) => isListOf(value, types.isRegExp), 'secret'],
  replace: ['a string or a function', (value) => typeof value === 'string' || typeof value === 'function'],
  keys: ['true, false or a list of names', (value) => typeof value === 'boolean' || isListOf(value, isName)],
};

function partsOf(options: unknown): RedactionParts {
  const { paths = [], patterns = [], replace = MASK, keys = true } = checkedOptions('the options', options, CHECKS);
  const names = typeof keys === 'boolean' ? [] : keys;
  return {
    names: keys === false ? undefined : new SecretNames(names, true),
    chunkNames: keys === false ? undefined : new SecretNames(names, false),
    paths: PathMatcher.root(paths),
    patterns,
    replacement: replace,
  };
}

function isListOf(value: unknown, holds: (item: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(holds);
}

function isName(key: unknown): boolean {
  return typeof key === 'string' && nameWords(key).length > 0;
}

/** Declared at the end, because the constructor needs the classes above. */
export const hideAll: Redaction = new Redaction(undefined);

export function defaultRedaction(): Redaction {
  compiledDefault ??= redact();
  return compiledDefault;
}

let compiledDefault: Redaction | undefined;

export function redactionOf(place: string, given: unknown): Redaction {
  if (given === undefined) return defaultRedaction();
  if (given instanceof Redaction) return given;
  diagnostics.error(`${place}: expected \`redact\` to be the result of redact(); every payload is hidden`);
  return hideAll;
}
