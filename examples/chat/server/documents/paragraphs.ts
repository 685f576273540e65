import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A piece of prose of one document. */
export interface Paragraph {
  /** Its place among all of them. */
  readonly id: number;
  readonly text: string;
  /** The heading that it stands under. */
  readonly heading: string;
  /** The file, by its path within the folder that was read. */
  readonly source: string;
}

const CHARACTERS_MIN = 40;
const CHARACTERS_MAX = 2_000;

/** The paragraphs of every Markdown file under a folder; what several files say in the same words is taken once. */
export function readDocuments(folder: string): Paragraph[] {
  const paragraphs = new Map<string, Paragraph>();
  for (const source of markdownFilesIn(folder)) {
    for (const { text, heading } of paragraphsOf(readFileSync(join(folder, source), 'utf8'))) {
      if (!paragraphs.has(text)) paragraphs.set(text, { id: paragraphs.size, text, heading, source });
    }
  }
  return [...paragraphs.values()];
}

/** Folders and files whose names begin with a dot are nobody's documents, and may come and go meanwhile. */
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

/** Prose only, items of lists each by itself: code, tables and what is too short to say something are left out. */
export function paragraphsOf(markdown: string): { text: string; heading: string }[] {
  const prose = markdown
    .replace(/\r\n?/g, '\n')
    .replace(/<!--[\s\S]*?-->/g, '')
    .replace(/^ {0,3}(```|~~~)[\s\S]*?^ {0,3}\1`*~* *$/gm, '\n')
    // What follows a heading is another block; to look back for one from each end of a line would take most of the time.
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
