import type { Row, Rows, Vocabulary } from './vocabulary.ts';

/** Where a row stands. */
export interface Place {
  readonly row: Row;
  readonly table: Rows;
  readonly position: number;
}

const NOWHERE: readonly Place[] = [];

/** The name of a flattened list ends before its first place: `llm.input_messages` of `llm.input_messages.0.message.role`. */
const FIRST_PLACE = /\.\d+(?=\.|$)/;

/** Finds the rows that read an attribute. Made once, of all tables. */
export class RowIndex {
  readonly #places = new Map<string, Place[]>();
  readonly #lists = new Set<string>();
  readonly #prefixes: string[] = [];

  constructor(vocabularies: readonly Vocabulary[]) {
    for (const { inputs, outputs, usage, parameters, metadata, tags, times = [] } of vocabularies) {
      for (const table of [inputs, outputs, usage, parameters, metadata, tags, times]) {
        for (const [position, row] of table.entries()) {
          const [attribute, , , manner] = row;
          this.#places.set(attribute, [...this.placesOf(attribute), { row, table, position }]);
          if (manner === 'list') this.#lists.add(attribute);
          if (attribute.endsWith('.') && !this.#prefixes.includes(attribute)) this.#prefixes.push(attribute);
        }
      }
    }
  }

  placesOf(attribute: string): readonly Place[] {
    return this.#places.get(attribute) ?? NOWHERE;
  }

  /** The list, or the prefix with its dot, that an attribute is a part of; undefined when it stands for itself. */
  groupOf(key: string): string | undefined {
    if (this.#places.has(key)) return undefined;
    const at = key.search(FIRST_PLACE);
    const name = at < 0 ? undefined : key.slice(0, at);
    if (name !== undefined && this.#lists.has(name)) return name;
    for (const prefix of this.#prefixes) if (key.startsWith(prefix)) return prefix;
    return undefined;
  }
}
