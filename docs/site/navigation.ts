import { readdirSync, readFileSync } from 'node:fs';

/** A page of docs/. */
export interface Page {
  /** The path below docs/. */
  readonly path: string;
  readonly title: string;
  /** The first sentence. */
  readonly sentence: string;
  readonly text: string;
}

export interface Group {
  readonly title: string;
  readonly pages: readonly Page[];
}

/** The folder docs/. */
const folder = new URL('../', import.meta.url);

/** Returns all pages of docs/ in the groups of docs/README.md. A page without a link there is in the group "More". */
export function navigation(): Group[] {
  const rest = new Map(pagePaths().map((path) => [path, readPage(path)]));
  const take = (path: string): Page[] => {
    const page = rest.get(path);
    rest.delete(path);
    return page === undefined ? [] : [page];
  };
  const reference = [...rest.keys()].filter((path) => path.startsWith('reference/')).flatMap(take);
  const groups = groupsOf(readFileSync(new URL('README.md', folder), 'utf8')).map(({ title, paths }) => ({
    title,
    pages: paths.flatMap(take),
  }));
  groups.push({ title: 'More', pages: [...rest.values()] }, { title: 'Reference', pages: reference });
  return groups.filter(({ pages }) => pages.length > 0);
}

/** Returns llms.txt: a link to each page, with its first sentence. https://llmstxt.org */
export function llmsText(name: string, description: string, groups: readonly Group[]): string {
  const sections = groups.map(({ title, pages }) => {
    const links = pages.map(({ path, title, sentence }) => `- [${title}](${path}): ${sentence}`);
    return `## ${title}\n\n${links.join('\n')}\n`;
  });
  return [`# ${name}\n`, `> ${description}\n`, ...sections].join('\n');
}

/** Returns the anchor of a heading as GitHub creates it, so that links to headings work on GitHub and on the site. */
export function githubAnchor(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-');
}

function pagePaths(): string[] {
  const folders = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name !== 'site')
    .map(({ name }) => `${name}/`);
  return ['', ...folders]
    .flatMap((inner) => readdirSync(new URL(inner, folder)).map((name) => inner + name))
    .filter((path) => path.endsWith('.md') && path !== 'README.md')
    .sort();
}

/** Returns the groups of an index page: a heading, or a line in bold, and the links to pages below it. */
function groupsOf(markdown: string): { title: string; paths: string[] }[] {
  const groups: { title: string; paths: string[] }[] = [];
  for (const line of markdown.split('\n')) {
    const [, heading, bold] = /^(?:#{2,3} +(.+)|\*\*(.+)\*\*)$/.exec(line.trim()) ?? [];
    const title = heading ?? bold;
    if (title !== undefined) groups.push({ title, paths: [] });
    for (const [, path = ''] of line.matchAll(/\]\(([\w/-]+\.md)(?:#[\w-]*)?\)/g)) groups.at(-1)?.paths.push(path);
  }
  return groups;
}

function readPage(path: string): Page {
  const text = readFileSync(new URL(path, folder), 'utf8');
  const title = plain(/^# +(.+)$/m.exec(text)?.[1] ?? path);
  const paragraph = text.split(/\n{2,}/).find((block) => /^[\p{L}`*[]/u.test(block)) ?? '';
  const sentence = /^.+?[.:](?= |$)/.exec(plain(paragraph).replaceAll('\n', ' '))?.[0] ?? '';
  return { path, title, sentence: sentence.replace(/:$/, '.'), text };
}

/** Removes the marks of links, code and emphasis. */
function plain(markdown: string): string {
  return markdown.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[`*]/g, '');
}
