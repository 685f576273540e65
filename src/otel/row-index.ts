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
  readonly #prefixes = new Set<string>();
  /** First words of the prefixes, to tell at once most names that are below none. */
  readonly #prefixRoots = new Set<string>();

  constructor(vocabularies: readonly Vocabulary[]) {
    for (const { inputs, outputs, usage, parameters, metadata, tags } of vocabularies) {
      for (const table of [inputs, outputs, usage, parameters, metadata, tags]) {
        for (const [position, row] of table.entries()) {
          const [attribute, , , manner] = row;
          this.#places.set(attribute, [...this.placesOf(attribute), { row, table, position }]);
          if (manner === 'list') this.#lists.add(attribute);
          if (manner !== 'below') continue;
          this.#prefixes.add(attribute);
          this.#prefixRoots.add(firstWord(attribute));
        }
      }
    }
  }

  placesOf(attribute: string): readonly Place[] {
    return this.#places.get(attribute) ?? NOWHERE;
  }

  /** The name by which rows read an attribute that is a part of something; undefined when it stands for itself. */
  groupOf(key: string): string | undefined {
    const at = key.search(FIRST_PLACE);
    const name = at < 0 ? undefined : key.slice(0, at);
    return name !== undefined && this.#lists.has(name) ? name : this.#prefixOf(key);
  }

  isList(name: string): boolean {
    return this.#lists.has(name);
  }

  #prefixOf(key: string): string | undefined {
    if (!this.#prefixRoots.has(firstWord(key)) || this.#places.has(key)) return undefined;
    for (let dot = key.lastIndexOf('.'); dot > 0; dot = key.lastIndexOf('.', dot - 1)) {
      const name = key.slice(0, dot);
      if (this.#prefixes.has(name)) return name;
    }
    return undefined;
  }
}

function firstWord(key: string): string {
  const dot = key.indexOf('.');
  return dot < 0 ? key : key.slice(0, dot);
}
