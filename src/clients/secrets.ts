/** Stands where a key or secret was. */
export const MASK = '[secret]';

/** Shorter ones are found in too many words; a key has more. */
const LENGTH_MIN = 4;

/** Takes the given keys and secrets out of texts, as they are and as JSON writes them. */
export class Secrets {
  readonly #texts: readonly string[];

  constructor(texts: readonly (string | undefined)[]) {
    const forms = texts.flatMap((text) => {
      if (text === undefined || text.length < LENGTH_MIN) return [];
      return [text, JSON.stringify(text).slice(1, -1), encodeURIComponent(text)];
    });
    // The longest first: one may be a part of another.
    this.#texts = [...new Set(forms)].sort((one, other) => other.length - one.length);
  }

  /** These, and others. */
  with(texts: readonly string[] | undefined): Secrets {
    return texts === undefined || texts.length === 0 ? this : new Secrets([...this.#texts, ...texts]);
  }

  masked(text: string): string {
    return this.#texts.reduce((left, secret) => left.replaceAll(secret, MASK), text);
  }

  /** The headers with their values masked. */
  maskedHeaders<Headers extends Readonly<Record<string, string | string[] | undefined>>>(headers: Headers): Headers {
    const mask = (value: string | string[] | undefined): string | string[] | undefined =>
      Array.isArray(value) ? value.map((one) => this.masked(one)) : value === undefined ? value : this.masked(value);
    return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, mask(value)])) as Headers;
  }
}
