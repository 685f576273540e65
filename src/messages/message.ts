/** A message in a common format for all providers. */
export interface Message {
  readonly role: string;
  readonly name?: string | undefined;
  readonly parts: readonly Part[];
}

/** A part of a message's content. Parts of the kind `other` are shown as JSON. */
export type Part =
  | { readonly kind: 'text' | 'reasoning' | 'refusal'; readonly text: string }
  | { readonly kind: 'media'; readonly source: string; readonly type?: string | undefined }
  | { readonly kind: 'call'; readonly id?: string | undefined; readonly name: string; readonly input: unknown }
  | {
      readonly kind: 'result';
      readonly id?: string | undefined;
      readonly name?: string | undefined;
      readonly value: unknown;
      readonly isError: boolean;
    }
  | { readonly kind: 'other'; readonly value: unknown };

export type Fields = Readonly<Record<string, unknown>>;

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns an object unchanged, and `{}` for any other value. */
export function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {};
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Returns the first value that is a non-empty string. */
export function textOf(...values: readonly unknown[]): string | undefined {
  return values.find((value): value is string => typeof value === 'string' && value !== '');
}

/** Parses text that contains a JSON object or list, for example tool arguments. Returns any other value unchanged. */
export function parseJson(value: unknown): unknown {
  if (typeof value !== 'string' || !/^\s*[[{]/.test(value)) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}
