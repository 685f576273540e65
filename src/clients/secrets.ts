import { ignoreErrors } from '../base/guard.ts';
import { SecretNames } from '../payload/redaction/names.ts';

export const MASK = '[secret]';

/** Minimum length of a value to mask. Masking shorter values would mask parts of ordinary words. */
const LENGTH_MIN = 4;

/**
 * Matches short words and numbers such as `true`, `prod` and `8080`. These values are settings, not secrets. Masking
 * these values would make errors unreadable.
 */
const PLAIN_SETTING = /^(?:[a-z]{1,7}|\d{1,7})$/i;

const secretNames = new SecretNames([], true);

export function hasSecretName(name: unknown): boolean {
  return typeof name === 'string' && secretNames.kindOf(name) !== undefined;
}

/** Returns the values of headers with a secret-looking name. A scheme such as `Bearer` is removed. */
export function secretsIn(headers: Readonly<Record<string, string | null>> | undefined): string[] {
  return Object.entries(headers ?? {}).flatMap(([name, value]) => {
    if (value === null || !hasSecretName(name)) return [];
    return [value.trim().replace(/^(?:Basic|Bearer|Digest|Token) +/i, '')];
  });
}

/** Masks secrets in text, including secrets encoded for JSON, URLs, forms or base64. */
export class Secrets {
  readonly #secrets: readonly string[];
  readonly #forms: readonly string[];

  constructor(secrets: readonly string[]) {
    this.#secrets = secrets.filter((text) => text.length >= LENGTH_MIN && !PLAIN_SETTING.test(text));
    // Replace longer forms first, because one secret may contain another.
    this.#forms = [...new Set(this.#secrets.flatMap(formsOf))].sort((one, other) => other.length - one.length);
  }

  with(secrets: readonly string[]): Secrets {
    return secrets.length === 0 ? this : new Secrets([...this.#secrets, ...secrets]);
  }

  masked(text: string): string {
    return this.#forms.reduce((left, form) => left.replaceAll(form, MASK), text);
  }

  /** Masks secrets in a JSON body. The body is parsed first, because JSON can escape a character in several ways. */
  maskedBody(text: string): string {
    if (this.#forms.length === 0) return text;
    // The body may not be JSON, or its nesting may exceed the call stack.
    return ignoreErrors(() => JSON.stringify(this.#maskedValue(JSON.parse(text)))) ?? this.masked(text);
  }

  maskedHeaders<Headers extends Readonly<Record<string, string | string[] | undefined>>>(headers: Headers): Headers {
    const mask = (value: string | string[] | undefined): string | string[] | undefined =>
      Array.isArray(value) ? value.map((one) => this.masked(one)) : value && this.masked(value);
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

function formsOf(text: string): string[] {
  const json = inJson(text);
  const ascii = json.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
  const url = encodeURIComponent(text.toWellFormed());
  const form = new URLSearchParams([['', text]]).toString().slice(1);
  // Omit the padding and the character before it, because both change if more bytes follow the secret.
  const base64 = btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join('')).replace(
    /.?={1,2}$/,
    '',
  );
  const base64Url = base64.replaceAll('+', '-').replaceAll('/', '_');
  return [text, json, inJson(json), ascii, inJson(ascii), url, form, base64, base64Url];
}

function inJson(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}
