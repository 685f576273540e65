import { existsSync } from 'node:fs';
import { join, posix } from 'node:path';
import { githubAnchor } from '../../docs/site/navigation.ts';
import { root } from '../support/folders.ts';
import { read } from './repository.ts';

/** Returns the links to missing pages and headings. */
export function brokenLinks(pages: readonly string[]): string[] {
  return pages.flatMap((page) =>
    linksOf(read(page)).flatMap((link) => {
      const [path = '', anchor] = link.split('#');
      const target = path === '' ? page : posix.join(posix.dirname(page), path);
      const isThere =
        existsSync(join(root, target)) &&
        (anchor === undefined || (target.endsWith('.md') && anchorsOf(read(target)).has(anchor)));
      return isThere ? [] : [`${page}: ${link}`];
    }),
  );
}

/** Returns the pages that a reader of `start` reaches with at most `clicks` links. */
export function pagesWithin(clicks: number, start: string): ReadonlySet<string> {
  const reached = new Set([start]);
  for (let left = clicks; left > 0; left -= 1) {
    for (const page of [...reached]) {
      const targets = linksOf(read(page)).map((link) => posix.join(posix.dirname(page), link.split('#')[0] ?? ''));
      for (const target of targets) if (target.endsWith('.md')) reached.add(target);
    }
  }
  return reached;
}

/** Returns the links to files of the repository. */
function linksOf(markdown: string): string[] {
  const links = [...prose(markdown).matchAll(/\]\(([^)\s]+)\)|\bhref="([^"]+)"/g)];
  return links.map(([, link = '', href = '']) => link || href).filter((link) => !/^[a-z][\w+.-]*:/i.test(link));
}

/** Returns the anchors of the headings as GitHub creates them. A repeated heading gets a number. */
export function anchorsOf(markdown: string): ReadonlySet<string> {
  const anchors = new Set([...markdown.matchAll(/<a id="([^"]+)">/g)].map(([, id = '']) => id));
  for (const [, heading = ''] of prose(markdown, 'headings').matchAll(/^#{1,6} +(.+?) *$/gm)) {
    const name = githubAnchor(heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1'));
    let anchor = name;
    for (let again = 1; anchors.has(anchor); again += 1) anchor = `${name}-${again}`;
    anchors.add(anchor);
  }
  return anchors;
}

/** Removes code, which contains no links. Headings keep their inline code. */
function prose(markdown: string, wanted: 'links' | 'headings' = 'links'): string {
  const text = markdown.replace(/^( *)(```+)[^\n]*\n[\s\S]*?^\1\2 *$/gm, '');
  return wanted === 'headings' ? text : text.replace(/(`+)[^`\n]+\1/g, '');
}
