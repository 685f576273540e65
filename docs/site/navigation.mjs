import { readdirSync, readFileSync } from 'node:fs';

/** The folder docs/. */
const folder = new URL('../', import.meta.url);

/**
 * @typedef {{ path: string, title: string, sentence: string, text: string }} Page a page with its path below docs/, its heading and
 *   its first sentence
 * @typedef {{ title: string, pages: Page[] }} Group
 */

/** Returns all pages of docs/ in the groups of docs/README.md. A page without a link there is in the group "More". @returns {Group[]} */
export function navigation() {
  const all = new Map(pagePaths().map((path) => [path, readPage(path)]));
  const groups = groupsOf(readFileSync(new URL('README.md', folder), 'utf8')).map(({ title, paths }) => ({
    title,
    pages: paths.flatMap((path) => take(all, path)),
  }));
  groups.push({ title: 'More', pages: [...all.values()].filter(({ path }) => !path.startsWith('reference/')) });
  groups.push({ title: 'Reference', pages: [...all.values()].filter(({ path }) => path.startsWith('reference/')) });
  return groups.filter(({ pages }) => pages.length > 0);
}

function pagePaths() {
  const folders = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name !== 'site')
    .map(({ name }) => `${name}/`);
  return ['', ...folders]
    .flatMap((inner) => readdirSync(new URL(inner, folder)).map((name) => inner + name))
    .filter((path) => path.endsWith('.md') && path !== 'README.md')
    .sort();
}

/** Returns the page and removes it from the pages that are left. */
function take(all, path) {
  const page = all.get(path);
  all.delete(path);
  return page === undefined ? [] : [page];
}

/** Returns the groups of an index page: a heading, or a line in bold, and the links to pages below it. */
function groupsOf(markdown) {
  const groups = [];
  for (const line of markdown.split('\n')) {
    const title = /^(?:#{2,3} +(.+)|\*\*(.+)\*\*)$/.exec(line.trim());
    if (title !== null) groups.push({ title: title[1] ?? title[2], paths: [] });
    for (const [, path] of line.matchAll(/\]\(([\w/-]+\.md)(?:#[\w-]*)?\)/g)) groups.at(-1)?.paths.push(path);
  }
  return groups;
}

function readPage(path) {
  const text = readFileSync(new URL(path, folder), 'utf8');
  const title = plain(/^# +(.+)$/m.exec(text)?.[1] ?? path);
  const paragraph = text.split(/\n{2,}/).find((block) => /^[\p{L}`*[]/u.test(block)) ?? '';
  const sentence = /^.+?[.:](?= |$)/.exec(plain(paragraph).replaceAll('\n', ' '))?.[0] ?? '';
  return { path, title, sentence: sentence.replace(/:$/, '.'), text };
}

/** Removes the marks of links, code and emphasis. */
function plain(markdown) {
  return markdown.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[`*]/g, '');
}
