import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import MiniSearch from 'minisearch';
import { traced } from 'runspan';
import { SettingsError } from '../settings.ts';

/** A paragraph of a Markdown file. */
export interface Paragraph {
  readonly id: number;
  readonly text: string;
  /** The heading above the paragraph. */
  readonly heading: string;
  /** The path of the file within the folder. */
  readonly source: string;
}

const CHARS_MIN = 40;
const CHARS_MAX = 2_000;
/** The rest of a longer query finds nothing better and takes time. */
const QUERY_CHARS_MAX = 2_000;

/** Reads the Markdown files of a folder, or the documentation of runspan. Throws a SettingsError if there are none. */
export function loadDocuments(folder: string | undefined): Documents {
  if (folder === undefined)
    return new Documents(
      readParagraphs(fileURLToPath(new URL('./docs/', import.meta.resolve('runspan/package.json')))),
    );
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true)
    throw new SettingsError(`Expected --docs to be a folder. There is no folder ${folder}.`);
  const paragraphs = readParagraphs(folder);
  if (paragraphs.length === 0)
    throw new SettingsError(
      `Expected --docs to be a folder with Markdown files. There is no Markdown text in ${folder}.`,
    );
  return new Documents(paragraphs);
}

/** Finds paragraphs by the words of a question. */
export class Documents {
  readonly #paragraphs: readonly Paragraph[];
  readonly #index: MiniSearch<Paragraph>;

  constructor(paragraphs: readonly Paragraph[]) {
    this.#paragraphs = paragraphs;
    this.#index = new MiniSearch<Paragraph>({
      fields: ['text', 'heading', 'source'],
      extractField: (paragraph, field) => {
        const value = paragraph[field as keyof Paragraph];
        return field === 'source' ? String(value).replace(/\.\w+$/, '') : value;
      },
      tokenize: wordsOf,
      processTerm: (word) => word,
      searchOptions: {
        boost: { heading: 1.5, source: 2 },
        // The first paragraph of a document or a section summarizes it.
        boostDocument: (id: number) => weightOf(paragraphs[id - 1], paragraphs[id]),
      },
    });
    this.#index.addAll(paragraphs);
  }

  /** Best match first. */
  @traced({ name: 'retrieve', runType: 'retriever' })
  search(question: string, limit = 5): Paragraph[] {
    return this.#index
      .search(question.slice(0, QUERY_CHARS_MAX))
      .slice(0, limit)
      .flatMap(({ id }) => this.#paragraphs[id] ?? []);
  }
}

function weightOf(before: Paragraph | undefined, own: Paragraph | undefined): number {
  if (before?.source !== own?.source) return 2.5;
  return before?.heading === own?.heading ? 1 : 1.5;
}

/** Words that are in most questions and do not describe their topic. */
const STOP_WORDS = new Set(
  `a an and any are as at be between by can could do does for from has have how i if in into is it its many me much my
   not of on or should so than that the their them there they this to use using was we what when where which who why
   will with would you your`.split(/\s+/),
);

/** Lower-case words without stop words and without the -s of plurals. */
export function wordsOf(text: string): string[] {
  return (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [])
    .filter((word) => !STOP_WORDS.has(word))
    .map((word) => (/[^s]s$/.test(word) && word.length > 3 ? word.slice(0, -1) : word));
}

/** The paragraphs of all Markdown files below a folder. A paragraph that occurs in several files is returned once. */
export function readParagraphs(folder: string): Paragraph[] {
  const paragraphs = new Map<string, Paragraph>();
  for (const source of markdownFilesIn(folder)) {
    for (const { text, heading } of paragraphsOf(readFileSync(join(folder, source), 'utf8'))) {
      if (!paragraphs.has(text)) paragraphs.set(text, { id: paragraphs.size, text, heading, source });
    }
  }
  return [...paragraphs.values()];
}

function markdownFilesIn(folder: string, path = ''): string[] {
  return readdirSync(join(folder, path), { withFileTypes: true })
    .filter(({ name }) => !name.startsWith('.'))
    .flatMap((entry) => {
      const inner = path === '' ? entry.name : `${path}/${entry.name}`;
      if (entry.isDirectory()) return markdownFilesIn(folder, inner);
      return /\.(md|markdown)$/i.test(entry.name) ? [inner] : [];
    })
    .sort();
}

/** The paragraphs and list items of a text, without code, tables and very short ones. */
export function paragraphsOf(markdown: string): { text: string; heading: string }[] {
  const prose = markdown
    .replace(/\r\n?/g, '\n')
    .replace(/<!--[\s\S]*?-->/g, '')
    .replace(/^ {0,3}(```|~~~)[\s\S]*?^ {0,3}\1`*~* *$/gm, '\n')
    // Separates a heading from the text below it.
    .replace(/^#{1,6} .*\n/gm, '$&\n');
  const found: { text: string; heading: string }[] = [];
  let heading = '';
  for (const block of prose.split(/\n\s*\n|\n(?=#{1,6} )|\n(?=\s*(?:[*+-]|\d+\.) )/)) {
    const title = /^\s*#{1,6} +(.*?)#*\s*$/.exec(block)?.[1];
    if (title !== undefined) heading = plain(title);
    else if (!/^(?: {4}|\t)\s*(?![*+-] |\d+\. |\s)|^\s*\|/.test(block)) {
      const text = plain(block).slice(0, CHARS_MAX);
      if (text.length >= CHARS_MIN && /\p{L}{3}/u.test(text)) found.push({ text, heading });
    }
  }
  return found;
}

function plain(markdown: string): string {
  return markdown
    .replace(/!\[[^\]]*\](\([^)]*\)|\[[^\]]*\])/g, '')
    .replace(/\[([^\]]*)\](\([^)]*\)|\[[^\]]*\])/g, '$1')
    .replace(/<\/?[a-z][^>]*>/gi, '')
    .replace(/^\s*([*+-]|\d+\.|>)\s+/gm, '')
    .replace(/\*\*|__|`|(?<!\w)[_*](?=\S)|(?<=\S)[_*](?!\w)/g, '')
    .replace(/\s+/g, ' ')
    .trim();
}
