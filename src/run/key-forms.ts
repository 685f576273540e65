import { keyBytes } from './json-output.ts';
import { isPairValue } from './secret-names.ts';

/** What is known of a key: how it is written, and whether its property needs a closer look. */
export interface KeyForm {
  readonly key: string;
  /** As `JsonOutput` takes it; undefined where it has to be written otherwise. */
  readonly bytes: Buffer | undefined;
  /** Whether it may be the name of a secret, contain one, or be no text. */
  readonly isSpecial: boolean;
  /**
   * Whether the key may hold the value of a `{ name, value }` pair. The name in the pair decides whether the value is a
   * secret.
   */
  readonly isPairValue: boolean;
  /** The form of the key that came next when this key last occurred. */
  next: KeyForm | undefined;
  /** Before the first key of an object below this key. */
  below: KeyForm | undefined;
}

/** Longer keys are seldom met again. */
const KEY_CHARACTERS_KEPT = 64;
/** Payloads are made of few keys, but for objects that are indexed by ids. */
const FORMS_MAX = 2_000;

/**
 * The forms of keys, each found out once as long as it is among those that are kept: the keys of payloads are always the
 * same ones, and to look at each anew would cost more than to write it.
 */
export class KeyForms {
  /** Before the first key of an object. */
  readonly start: KeyForm = newStart();
  readonly #isSpecial: (key: string) => boolean;
  readonly #forms = new Map<string, KeyForm>();

  constructor(isSpecial: (key: string) => boolean) {
    this.#isSpecial = isSpecial;
  }

  of(key: string): KeyForm {
    return this.#forms.get(key) ?? this.#make(key);
  }

  /** The same, found sooner where the key came after that other one the last time too, as in objects of one shape. */
  after(before: KeyForm, key: string): KeyForm {
    const next = before.next;
    if (next !== undefined && next.key === key) return next;
    const form = this.of(key);
    if (key.length <= KEY_CHARACTERS_KEPT) before.next = form;
    return form;
  }

  /** Before the first key of an object below this key. */
  below(form: KeyForm): KeyForm {
    form.below ??= newStart();
    return form.below;
  }

  #make(given: string): KeyForm {
    const key = detached(given);
    const isSpecial = key === 'toJSON' || !key.isWellFormed() || this.#isSpecial(key);
    const form: KeyForm = {
      key,
      bytes: isSpecial ? undefined : keyBytes(key),
      isSpecial,
      isPairValue: isPairValue(key),
      next: undefined,
      below: undefined,
    };
    if (key.length > KEY_CHARACTERS_KEPT) return form;
    if (this.#forms.size >= FORMS_MAX) this.#forms.clear();
    this.#forms.set(key, form);
    return form;
  }
}

/** Copies a part of a text. A slice that outlives the text would keep the whole text in memory. */
export function detached(part: string): string {
  return Object.keys({ [part]: true })[0] as string;
}

function newStart(): KeyForm {
  return { key: '', bytes: undefined, isSpecial: false, isPairValue: false, next: undefined, below: undefined };
}

/** How keys are written where nothing is hidden. */
export const plainKeys: KeyForms = new KeyForms(() => false);
