import { diagnostics } from '../base/diagnostics.ts';
import { ignoreRejection } from '../base/guard.ts';
import { untraced } from './context.ts';
import { KeyForms } from './key-forms.ts';
import type { PathPlace, Step } from './redaction-paths.ts';
import { isHeaders, type SecretNames } from './secret-names.ts';
import { mayHoldNames, TextSecrets } from './text-secrets.ts';

/** Stands for what is hidden. */
export const MASK = '[Redacted]';

/** Stands for a field in which something could not be hidden. */
const FAILED = '[Redaction failed]';

/** What stands for a text that was found: a text, or a function that makes one of it. */
export type Replacement = string | ((found: string, path: string) => string);

/** What a redaction is made of, checked. */
export interface RedactionParts {
  readonly names: SecretNames | undefined;
  /** The names where a model's text comes in pieces. */
  readonly namesBesideText: SecretNames | undefined;
  readonly paths: PathPlace | undefined;
  readonly patterns: readonly RegExp[];
  readonly replacement: Replacement;
}

/** Something could not be hidden, so the field that it is in is not to be shown. */
class RedactionFailure extends Error {}

/**
 * What is to be hidden of payloads, compiled by `redact`; pass it to `configure`, `createExporter` or `recordRuns`. It has
 * nothing to call.
 */
export class Redaction {
  /** @internal Hides every payload: what was to be hidden could not be understood. */
  readonly hidesAll: boolean;
  /** @internal How keys are written; special are those that need `isHidden` or `maskFound`. */
  readonly keys: KeyForms;
  /** @internal Above all fields; undefined without paths. */
  readonly root: PathPlace | undefined;
  /** @internal Whether the replacement is told where it found something. */
  readonly wantsTrail: boolean;
  /** @internal Whether there is anything to look for in texts. */
  readonly hasPatterns: boolean;
  /** @internal The names under which values are hidden. */
  readonly names: SecretNames | undefined;
  readonly #texts: TextSecrets | undefined;
  readonly #besideText: Redaction | undefined;
  readonly #tests: readonly RegExp[];
  readonly #finders: readonly RegExp[];
  readonly #replacement: Replacement;
  #isReplacing = false;

  /** @internal Without parts everything is hidden. */
  constructor(parts: RedactionParts | undefined) {
    this.hidesAll = parts === undefined;
    this.root = parts?.paths;
    this.names = parts?.names;
    this.#texts = parts?.names && new TextSecrets(parts.names, (value, trail) => this.mask(value, trail));
    const patterns = parts?.patterns ?? [];
    this.hasPatterns = patterns.length > 0;
    this.#tests = patterns.map((pattern) => new RegExp(pattern.source, pattern.flags.replace(/[dgy]/g, '')));
    this.#finders = this.#tests.map((pattern) => new RegExp(pattern.source, `${pattern.flags}g`));
    this.#replacement = parts?.replacement ?? MASK;
    this.wantsTrail = typeof this.#replacement === 'function';
    this.keys = new KeyForms((key) => this.#mayHideAt(key) || this.finds(key));
    this.#besideText =
      parts === undefined || parts.names === parts.namesBesideText
        ? undefined
        : new Redaction({ ...parts, names: parts.namesBesideText });
  }

  /** @internal The same for what a model's text comes in, where `token` is a piece of it. */
  get besideText(): Redaction {
    return this.#besideText ?? this;
  }

  /** @internal Whether a key of this name hides the value. */
  isHidden(key: string, value: unknown, owner: object): boolean {
    return this.names?.hides(key, value, owner) === true;
  }

  #mayHideAt(key: string): boolean {
    return this.names !== undefined && (isHeaders(key) || mayHoldNames(key) || this.names.kindOf(key) !== undefined);
  }

  /** @internal Returns the text with the values under secret names masked, if it is JSON text or contains URLs. */
  maskNamed(text: string, trail: readonly Step[]): string {
    return this.#texts !== undefined && mayHoldNames(text) ? this.#texts.masked(text, trail) : text;
  }

  /** @internal Whether JSON text must be parsed to find values that are hidden because of their names. */
  mayHideIn(json: string): boolean {
    if (this.#texts === undefined) return false;
    return this.#texts.isLikelyIn(json) || (json.includes('://') && this.#texts.masked(json, []) !== json);
  }

  /** @internal Whether a pattern finds something in the text. */
  finds(text: string): boolean {
    for (const pattern of this.#tests) if (pattern.test(text)) return true;
    return false;
  }

  /** @internal What stands for a whole value that is hidden. Only text and numbers are shown to a function. */
  mask(value: unknown, trail: readonly Step[]): string {
    const isShown = typeof value === 'string' || typeof value === 'number';
    return this.wantsTrail && !isShown ? MASK : this.#replaced(isShown ? String(value) : '', trail);
  }

  /** @internal The text with what patterns find in it replaced. */
  maskFound(text: string, trail: readonly Step[]): string {
    if (!this.finds(text)) return text;
    return this.#finders.reduce(
      (shown, pattern) => shown.replace(pattern, (found) => (found === '' ? '' : this.#replaced(found, trail))),
      text,
    );
  }

  /** @internal The first `end` characters of a text, masked: with the whole mask of what is found across the end. */
  maskHead(text: string, end: number, trail: readonly Step[]): string {
    const shown = this.#maskAround(text, end, true, trail);
    return shown.text.slice(0, shown.at);
  }

  /** @internal The characters of a text from `start` on, masked: with the whole mask of what is found across the start. */
  maskTail(text: string, start: number, trail: readonly Step[]): string {
    const shown = this.#maskAround(text, start, false, trail);
    return shown.text.slice(shown.at);
  }

  /** Follows a place in the text while that is masked; a place inside of what is found moves behind its mask, or before it. */
  #maskAround(given: string, place: number, isHead: boolean, trail: readonly Step[]): { text: string; at: number } {
    let text = given;
    let at = place;
    for (const pattern of this.#finders) {
      let shown = '';
      let end = 0;
      let moved: number | undefined;
      for (const { 0: found, index } of text.matchAll(pattern)) {
        if (found === '') continue;
        shown += text.slice(end, index);
        if (at <= index) moved ??= shown.length - (index - at);
        end = index + found.length;
        const mask = this.#replaced(found, trail);
        if (at < end) moved ??= shown.length + (isHead ? mask.length : 0);
        shown += mask;
      }
      at = moved ?? shown.length + (at - end);
      text = shown + text.slice(end);
    }
    return { text, at };
  }

  #replaced(found: string, trail: readonly Step[]): string {
    if (typeof this.#replacement === 'string') return this.#replacement;
    // A replacement that starts a run all the same would be asked what of that is to be hidden, without end.
    if (this.#isReplacing) throw new RedactionFailure();
    let answer: unknown;
    this.#isReplacing = true;
    try {
      answer = untraced(this.#replacement, found, trail.join('.'));
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

/** What stands for a field in which something could not be hidden; undefined where something else went wrong. */
export function failureText(thrown: unknown): string | undefined {
  if (!(thrown instanceof RedactionFailure)) return undefined;
  diagnostics.warnOnce('redact', 'redact: `replace` threw or did not answer with text; the field was hidden');
  return FAILED;
}
