import { jsonText } from './json-text.ts';

/** What is known of a key: how it is written, and whether its property needs a closer look. */
export interface KeyForm {
  /** With the brace that opens its object: `{"key":` */
  readonly first: string;
  /** With the comma before it: `,"key":` */
  readonly next: string;
  readonly isSpecial: boolean;
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
  readonly #isSpecial: (key: string) => boolean;
  readonly #forms = new Map<string, KeyForm>();

  constructor(isSpecial: (key: string) => boolean) {
    this.#isSpecial = isSpecial;
  }

  of(key: string): KeyForm {
    return this.#forms.get(key) ?? this.#make(key);
  }

  #make(key: string): KeyForm {
    const json = jsonText(key);
    const form: KeyForm = { first: `{${json}:`, next: `,${json}:`, isSpecial: isOwnWay(key) || this.#isSpecial(key) };
    if (key.length > KEY_CHARACTERS_KEPT) return form;
    if (this.#forms.size >= FORMS_MAX) this.#forms.clear();
    this.#forms.set(key, form);
    return form;
  }
}

/** How keys are written where nothing is hidden. */
export const plainKeys: KeyForms = new KeyForms(() => false);

function isOwnWay(key: string): boolean {
  return key === 'toJSON' || !key.isWellFormed();
}
