import { RunspanError } from '../../base/errors.ts';

/** The last item of a page, by what it was sorted by and by its id: the next page begins after it. */
export interface Position {
  /** Null for items without the value, which come last. */
  readonly value: number | null;
  readonly id: string;
}

export function cursorOf({ value, id }: Position): string {
  return Buffer.from(JSON.stringify([value, id])).toString('base64url');
}

/** Returns the position encoded in a cursor. Throws a RunspanError if the text is not a cursor. */
export function positionOf(cursor: string): Position {
  const [value, id] = read(cursor);
  if ((value === null || Number.isFinite(value)) && typeof id === 'string')
    return { value: value as number | null, id };
  throw new RunspanError('RUNSPAN_INVALID_OPTION', 'Expected `cursor` to be the `next` value of the previous page');
}

function read(cursor: string): readonly unknown[] {
  try {
    const read: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    return Array.isArray(read) ? read : [];
  } catch {
    return [];
  }
}

/** Below zero when `a` stands before `b`. */
export function compare(a: Position, b: Position, descending: boolean): number {
  const way = descending ? -1 : 1;
  if (a.value !== b.value) {
    if (a.value === null) return 1;
    if (b.value === null) return -1;
    return a.value < b.value ? -way : way;
  }
  return a.id === b.id ? 0 : a.id < b.id ? -way : way;
}
