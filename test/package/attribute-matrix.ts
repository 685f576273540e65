import type { Attributes } from '#src/otel/conventions/values.ts';
import { type Row, type Vocabulary, WHOLE } from '#src/otel/conventions/vocabulary.ts';
import { type Notes, notes } from './attribute-notes.ts';

/** Where the fields of a group are in a run. */
const PLACES: Readonly<Record<string, string>> = {
  usage: 'usage_metadata',
  parameters: 'metadata.ls_invocation_params',
};

/** Fields of a run with their attributes, in order of precedence. */
type FieldSources = ReadonlyMap<string, readonly string[]>;

/** Returns the page with the mapping of attributes to fields of runs. */
export function attributeMatrix(vocabularies: readonly Vocabulary[]): string {
  const sources = vocabularies.map(sourcesOf);
  const fields = [...new Set(sources.flatMap((one) => [...one.keys()]))].sort(byPlace);
  const titles = vocabularies.map(({ name }) => notesOf(name).title);
  return [
    '# Span attributes',
    '<!-- Generated from the tables in src/otel/ by `npm run generate`. -->',
    [
      'Each column of the table is a vocabulary of span attributes. If several vocabularies set a field, the leftmost one',
      'takes precedence. All inputs of a run come from one vocabulary, and so do all outputs. Attributes without a field are',
      'recorded in `extra.metadata` under their own names, unless their note is "not recorded".',
    ].join('\n'),
    table(
      ['', ...titles],
      fields.map((field) => [code(field), ...sources.map((one) => (one.has(field) ? '●' : ''))]),
    ),
    ...vocabularies.map((vocabulary, at) => section(vocabulary, sources[at] as FieldSources)),
    '',
  ].join('\n\n');
}

function section(vocabulary: Vocabulary, sources: FieldSources): string {
  const { title, specification, kinds = [], omitted } = notesOf(vocabulary.name);
  const parts = [`## ${title}`];
  if (specification !== undefined) parts.push(`<${specification}>`);
  if (kinds.length > 0)
    parts.push(
      table(['attribute', 'run type', 'name of the run (default: name of the span)'], kinds.map(kindRow(vocabulary))),
    );
  const rows = [...sources].sort(([a], [b]) => byPlace(a, b));
  if (rows.length > 0)
    parts.push(
      table(
        ['field', 'attributes, in order of precedence'],
        rows.map(([field, from]) => [code(field), list(from)]),
      ),
    );
  const left = Object.entries({ ...omitted, ...(vocabulary.ignored && { 'not recorded': vocabulary.ignored }) });
  if (left.length > 0)
    parts.push(
      table(
        ['attributes without a field', 'note'],
        left.map(([note, attributes]) => [list(attributes), note]),
      ),
    );
  return parts.join('\n\n');
}

const kindRow =
  (vocabulary: Vocabulary) =>
  (attributes: Attributes): string[] => {
    const { runType = '', nameFrom, rename } = vocabulary.kindOf(attributes);
    const said = Object.entries(attributes).map(([name, value]) => `${code(name)} ${value}`);
    return [said.join(', '), runType, nameFrom === undefined ? (rename?.to ?? '') : code(nameFrom)];
  };

export function groupsOf(vocabulary: Vocabulary): [group: string, rows: readonly Row[]][] {
  return Object.entries(vocabulary).filter(
    (entry): entry is [string, readonly Row[]] => Array.isArray(entry[1]) && entry[1].every(Array.isArray),
  );
}

function sourcesOf(vocabulary: Vocabulary): FieldSources {
  const sources = new Map<string, string[]>();
  for (const [group, rows] of groupsOf(vocabulary)) {
    for (const row of rows) {
      const field = fieldOf(group, row[1]);
      const attribute = shown(row);
      const known = sources.get(field) ?? [];
      if (!known.includes(attribute)) sources.set(field, [...known, attribute]);
    }
  }
  return sources;
}

function fieldOf(group: string, key: string): string {
  if (key === WHOLE) return PLACES[group] ?? group;
  return key === group ? key : `${PLACES[group] ?? group}.${key}`;
}

/** Returns the name of the attribute, with a star if the row matches a prefix. */
function shown([attribute, , , manner]: Row): string {
  if (attribute.endsWith('.')) return `${attribute}*`;
  return manner === 'list' || (manner as string) === 'below' ? `${attribute}.*` : attribute;
}

const ORDER = ['inputs', 'outputs', 'usage_metadata', 'metadata', 'tags'];

/** Compares fields by their position in a run, and a whole object before its parts. */
function byPlace(a: string, b: string): number {
  const place = (field: string): number => {
    const at = ORDER.indexOf(field.split('.', 1)[0] ?? '');
    return at < 0 ? ORDER.length : at;
  };
  const rank = (field: string): number => Number(field.startsWith('metadata.ls_invocation_params'));
  return place(a) - place(b) || rank(a) - rank(b);
}

function notesOf(name: string): Notes {
  return notes[name] ?? { title: name };
}

const code = (text: string): string => `\`${text}\``;
const list = (texts: readonly string[]): string => texts.map(code).join(', ');

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, head.map(() => '---'), ...rows];
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
