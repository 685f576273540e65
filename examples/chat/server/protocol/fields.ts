export type Fields = Readonly<Record<string, unknown>>;

/** The fields of a value that others have sent; none where it is no object. */
export function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}
