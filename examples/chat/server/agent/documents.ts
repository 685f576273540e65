import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { lexer, type Token } from 'marked';
import MiniSearch from 'minisearch';
import { traced } from 'runspan';
import { SettingsError } from '../settings.ts';

/** A paragraph or list item of a Markdown file. */
export interface Paragraph {
  readonly id: number;
  readonly text: string;
  /** Text of the heading above the paragraph. */
  readonly heading: string;
  /** Path of the file, relative to the folder. */
  readonly source: string;
}

const CHARS_MIN = 40;
const CHARS_MAX = 2_000;
/** Maximum length of a query. Longer queries are truncated, because searching for them takes too long. */
const QUERY_CHARS_MAX = 2_000;

/**
 * Reads the Markdown files in a folder, by default runspan's documentation. Throws a SettingsError if there are no
 * Markdown files.
 */
export function loadDocuments(folder: string | undefined): Documents {
  const path = folder ?? nearestDocs(import.meta.dirname);
  if (!isFolder(path)) throw new SettingsError(`Expected --docs to be a folder. There is no folder ${path}.`);
  const paragraphs = readParagraphs(path);
  if (paragraphs.length > 0) return new Documents(paragraphs);
  throw new SettingsError(`Expected --docs to be a folder with Markdown files. There is no Markdown text in ${path}.`);
}

/** Returns the folder `docs` beside or above `folder`: `npm run chat -- copy` copies runspan's documentation into the copy. */
function nearestDocs(folder: string): string {
  const docs = join(folder, 'docs');
  return isFolder(docs) || dirname(folder) === folder ? docs : nearestDocs(dirname(folder));
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** Finds paragraphs by the words in a question. */
export class Documents {
  readonly #paragraphs: readonly Paragraph[];
  readonly #index: MiniSearch<Paragraph>;

  constructor(paragraphs: readonly Paragraph[]) {
    this.#paragraphs = paragraphs;
    this.#index = new MiniSearch<Paragraph>({
      fields: ['text', 'heading', 'source'],
      tokenize: wordsOf,
      processTerm: (word) => word,
      searchOptions: {
        boost: { heading: 1.5, source: 2 },
        // The first paragraph of a document or section gets a higher weight, because it usually summarizes the rest.
        boostDocument: (id: number) => weightOf(paragraphs[id - 1], paragraphs[id]),
      },
    });
    this.#index.addAll(paragraphs);
  }

  /** Returns matching paragraphs, best match first. */
  @traced({ name: 'retrieve', runType: 'retriever' })
  search(question: string, limit = 5): Paragraph[] {
    const found = this.#index.search(question.slice(0, QUERY_CHARS_MAX)).slice(0, limit);
    return found.flatMap(({ id }) => this.#paragraphs[id] ?? []);
  }
}

function weightOf(before: Paragraph | undefined, own: Paragraph | undefined): number {
  if (before?.source !== own?.source) return 2.5;
  return before?.heading === own?.heading ? 1 : 1.5;
}

/** Words that occur in most questions and say nothing about the topic. */
const STOP_WORDS = new Set(
  `a an and any are as at be between by can could do does for from has have how i if in into is it its many me md much my
   not of on or should so than that the their them there they this to use using was we what when where which who why
   will with would you your`.split(/\s+/),
);

/** Returns the words of a text in lower case, without stop words and without a plural -s. */
export function wordsOf(text: string): string[] {
  return (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [])
    .filter((word) => !STOP_WORDS.has(word))
    .map((word) => (/[^s]s$/.test(word) && word.length > 3 ? word.slice(0, -1) : word));
}

/**
 * Returns the paragraphs of all Markdown files in a folder. A paragraph that occurs in several files is returned once.
 */
function readParagraphs(folder: string): Paragraph[] {
  const paragraphs = new Map<string, Paragraph>();
  const sources = (readdirSync(folder, { recursive: true }) as string[]).filter(isMarkdownFile).sort();
  for (const source of sources) {
    for (const { text, heading } of paragraphsOf(readFileSync(join(folder, source), 'utf8'))) {
      if (!paragraphs.has(text)) paragraphs.set(text, { id: paragraphs.size, text, heading, source });
    }
  }
  return [...paragraphs.values()];
}

/** Whether a path is a Markdown file that is not hidden and not in a hidden folder. */
function isMarkdownFile(path: string): boolean {
  return /\.(md|markdown)$/i.test(path) && !/(^|[\\/])\./.test(path);
}

/** Returns the paragraphs and list items of a text. Code, tables and very short paragraphs are omitted. */
function paragraphsOf(markdown: string): { text: string; heading: string }[] {
  const found: { text: string; heading: string }[] = [];
  let heading = '';
  for (const token of lexer(markdown)) {
    if (token.type === 'heading') heading = textOf(token.tokens);
    const parts: Token[] =
      token.type === 'list' ? token.items : /^(paragraph|blockquote)$/.test(token.type) ? [token] : [];
    for (const part of parts) {
      const text = textOf('tokens' in part ? part.tokens : []).slice(0, CHARS_MAX);
      if (text.length >= CHARS_MIN) found.push({ text, heading });
    }
  }
  return found;
}

function textOf(tokens: readonly Token[] = []): string {
  const texts = tokens.map((token) => {
    if (/^(code|image|html|space|table)$/.test(token.type)) return ' ';
    if (token.type === 'list') return ` ${textOf(token.items)} `;
    return 'tokens' in token ? textOf(token.tokens) : 'text' in token ? token.text : token.raw;
  });
  return texts.join('').replace(/\s+/g, ' ').trimStart();
}
