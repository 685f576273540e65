/** Something of the AI SDK's, read by its shape: the majors differ, and none is imported. */
export type Fields = Record<string, unknown>;

/** An object to read fields of; an empty one for anything else. */
export function fields(value: unknown): Fields {
  return (typeof value === 'object' && value !== null) || typeof value === 'function' ? (value as Fields) : {};
}

export function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** A finite number: the SDK says NaN for what a provider has not told. */
export function number(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Without the keys whose value is undefined; undefined where none is left. */
export function defined<Value extends object>(value: Value): Value | undefined {
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  return entries.length === 0 ? undefined : (Object.fromEntries(entries) as Value);
}
