/** The JSON text of a text. Halves of surrogate pairs, which strict services refuse, become U+FFFD. */
export function jsonText(text: string): string {
  return JSON.stringify(text.toWellFormed());
}

/** What a JSON text cannot hold as it is, and some that it could. */
const SPECIAL = /["\\\p{Cc}\p{Cs}]/u;

/** Up to here it takes less time to look at each character than to ask the pattern. */
const FEW_CHARACTERS = 12;

/** The same, for a text of some dozens of characters: most need nothing but their quotation marks. */
export function shortJsonText(text: string): string {
  if (text.length > FEW_CHARACTERS) return SPECIAL.test(text) ? jsonText(text) : `"${text}"`;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    // Most are letters.
    if (code > 92 ? code >= 0xd800 : code < 32 || code === 34 || code === 92) return jsonText(text);
  }
  return `"${text}"`;
}

/** The same, for a long text that needs nothing else either; undefined for any other, which is soon seen in most. */
export function plainJsonText(text: string): string | undefined {
  return text.includes('\n') || SPECIAL.test(text) ? undefined : `"${text}"`;
}

/**
 * Text that is being put together around long texts. Those are left out at first, and all made JSON in one go, as items of one
 * list: to begin anew for each costs more than the rest of a payload of few but long texts.
 */
export class TextAroundLongs {
  readonly #longs: string[] = [];
  /** What comes before each of them. */
  readonly #before: string[] = [];

  /** Takes a text that belongs at the end of `before`, and of all that was taken already. */
  add(before: string, long: string): void {
    this.#before.push(before);
    this.#longs.push(long.toWellFormed());
  }

  /** Everything in its order, and `rest` at the end. */
  join(rest: string): string {
    const longs = this.#longs;
    const before = this.#before;
    const list = JSON.stringify(longs);
    const last = longs.length - 1;
    let text = '';
    let start = 1;
    for (let at = 0; at < last; at++) {
      // Nothing is shorter as JSON, so its closing mark stands here or later.
      let end = list.indexOf('"', start + 1 + (longs[at] as string).length);
      while (isEscaped(list, end)) end = list.indexOf('"', end + 1);
      text += before[at];
      text += list.slice(start, end + 1);
      start = end + 2;
    }
    return text + before[last] + list.slice(start, -1) + rest;
  }
}

function isEscaped(json: string, at: number): boolean {
  let start = at;
  while (json.charCodeAt(start - 1) === 92) start--;
  return (at - start) % 2 === 1;
}
