/** A message of a conversation, whoever's shape it came in. */
export interface Message {
  readonly role: string;
  readonly name?: string;
  readonly parts: readonly Part[];
}

/** What a message is made of. `other` is shown as the JSON that it is. */
export type Part =
  | { readonly kind: 'text' | 'reasoning' | 'refusal'; readonly text: string }
  | { readonly kind: 'media'; readonly source: string; readonly type?: string }
  | { readonly kind: 'call'; readonly id?: string; readonly name: string; readonly given: unknown }
  | {
      readonly kind: 'result';
      readonly id?: string;
      readonly name?: string;
      readonly value: unknown;
      readonly isError: boolean;
    }
  | { readonly kind: 'other'; readonly value: unknown };

export type Fields = Readonly<Record<string, unknown>>;

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The fields of an object; none of anything else. */
export function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {};
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** JSON text as its value, where it is some: arguments of tools come as text. */
export function parsed(value: unknown): unknown {
  if (typeof value !== 'string' || !/^\s*[[{]/.test(value)) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}
