import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { traceable } from 'runspan';

/** A paragraph or list item in a document. */
export interface Paragraph {
  readonly id: number;
  readonly text: string;
  /** The heading above the paragraph. */
  readonly heading: string;
  /** The file's path, relative to the folder. */
  readonly source: string;
}

const CHARACTERS_MIN = 40;
const CHARACTERS_MAX = 2_000;

/** Returns the paragraphs in all Markdown files in a folder. A text that occurs in several files is returned once. */
export const readDocuments = traceable(
  (folder: string): Paragraph[] => {
    const paragraphs = new Map<string, Paragraph>();
    for (const source of markdownFilesIn(folder)) {
      for (const { text, heading } of paragraphsOf(readFileSync(join(folder, source), 'utf8'))) {
        if (!paragraphs.has(text)) paragraphs.set(text, { id: paragraphs.size, text, heading, source });
      }
    }
    return [...paragraphs.values()];
  },
  {
    name: 'read documents',
    runType: 'tool',
    inputs: ([folder]) => ({ folder }),
    // Recording all texts would take megabytes.
    outputs: (paragraphs) => ({
      files: new Set(paragraphs.map(({ source }) => source)).size,
      paragraphs: paragraphs.length,
    }),
  },
);

/** Skips files and folders whose names begin with a dot, which may appear and disappear at any time. */
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

/** Returns paragraphs and list items. Omits code, tables and very short text. */
export function paragraphsOf(markdown: string): { text: string; heading: string }[] {
  const prose = markdown
    .replace(/\r\n?/g, '\n')
    .replace(/<!--[\s\S]*?-->/g, '')
    .replace(/^ {0,3}(```|~~~)[\s\S]*?^ {0,3}\1`*~* *$/gm, '\n')
    // Separates a heading from the text below it. Looking back for a heading from each line end would take most of the
    // time.
    .replace(/^#{1,6} .*\n/gm, '$&\n');
  const found: { text: string; heading: string }[] = [];
  let heading = '';
  for (const block of prose.split(/\n\s*\n|\n(?=#{1,6} )|\n(?=\s*(?:[*+-]|\d+\.) )/)) {
    const title = /^\s*#{1,6} +(.*?)#*\s*$/.exec(block)?.[1];
    if (title !== undefined) heading = plain(title);
    else if (!/^(?: {4}|\t)\s*(?![*+-] |\d+\. |\s)|^\s*\|/.test(block)) {
      const text = plain(block).slice(0, CHARACTERS_MAX);
      if (text.length >= CHARACTERS_MIN && /\p{L}{3}/u.test(text)) found.push({ text, heading });
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
