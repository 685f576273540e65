/** Stands where a key or secret was. */
export const MASK = '[secret]';

/** Shorter ones are found in too many words; a key has more. */
const LENGTH_MIN = 4;

/** Takes the given keys and secrets out of texts, as they are and as JSON, addresses and base64 write them. */
export class Secrets {
  readonly #secrets: readonly string[];
  readonly #forms: readonly string[];

  constructor(texts: readonly (string | undefined)[]) {
    this.#secrets = texts.filter((text) => text !== undefined && text.length >= LENGTH_MIN) as string[];
    // The longest first: one may be a part of another.
    this.#forms = [...new Set(this.#secrets.flatMap(formsOf))].sort((one, other) => other.length - one.length);
  }

  /** These, and others. */
  with(texts: readonly string[] | undefined): Secrets {
    return texts === undefined || texts.length === 0 ? this : new Secrets([...this.#secrets, ...texts]);
  }

  masked(text: string): string {
    return this.#forms.reduce((left, form) => left.replaceAll(form, MASK), text);
  }

  /** The text of a body. What is JSON is masked as what it says: any letter may be written in several ways there. */
  maskedBody(text: string): string {
    if (this.#forms.length === 0) return text;
    try {
      return JSON.stringify(this.#maskedValue(JSON.parse(text)));
    } catch {
      // No JSON, or deeper than a call can go.
      return this.masked(text);
    }
  }

  /** The headers with their values masked. */
  maskedHeaders<Headers extends Readonly<Record<string, string | string[] | undefined>>>(headers: Headers): Headers {
    const mask = (value: string | string[] | undefined): string | string[] | undefined =>
      Array.isArray(value) ? value.map((one) => this.masked(one)) : value === undefined ? value : this.masked(value);
    return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, mask(value)])) as Headers;
  }

  #maskedValue(value: unknown): unknown {
    if (typeof value === 'string') return this.masked(value);
    if (typeof value === 'number') return this.masked(String(value)) === String(value) ? value : MASK;
    if (Array.isArray(value)) return value.map((one) => this.#maskedValue(one));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [this.masked(key), this.#maskedValue(one)]));
  }
}

/** How a text may stand in another: in JSON, in JSON within JSON, in an address, a form, or as base64. */
function formsOf(text: string): string[] {
  const json = inJson(text);
  const ascii = json.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
  // Half of a pair cannot be encoded.
  const url = encodeURIComponent(text.toWellFormed());
  const form = new URLSearchParams([['', text]]).toString().slice(1);
  const bytes = Buffer.from(text);
  // Its last letter depends on what follows.
  const base64 = bytes.toString('base64').replace(/.?={1,2}$/, '');
  const base64Url = base64.replaceAll('+', '-').replaceAll('/', '_');
  return [text, json, inJson(json), ascii, inJson(ascii), url, form, base64, base64Url];
}

function inJson(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}
