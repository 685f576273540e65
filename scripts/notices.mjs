import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A title, copyrights, and "All rights reserved." */
const HEAD_PARAGRAPHS_MAX = 3;

/**
 * Writes the licences of the packages to which these module ids belong. A text that applies to several packages is
 * written once, below their names and copyrights.
 */
export function writeNotices(file, moduleIds) {
  const folders = moduleIds
    .map((id) => /^\0?(.*\/node_modules\/(?:@[^/]+\/)?[^/.][^/]*)/.exec(id)?.[1])
    .filter(Boolean);
  const notices = [...new Set(folders)].map(noticeOf).sort((one, other) => (one.head < other.head ? -1 : 1));
  const sections = new Map();
  for (const { head, terms } of notices) {
    // Some texts differ only in their line breaks.
    const key = terms.replace(/\s+/g, ' ');
    const { heads = [], ...first } = sections.get(key) ?? { terms };
    sections.set(key, { ...first, heads: [...heads, head] });
  }
  const texts = [...sections.values()].map(({ heads, terms }) => `${[...heads, terms].join('\n\n')}\n`);
  writeFileSync(file, texts.join(`\n${'-'.repeat(80)}\n\n`));
}

/** Returns the terms of a package's licence, and its beginning: the package, the licence's title and the copyrights. */
function noticeOf(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  if (file === undefined) throw new Error(`${name} ${version} has no licence file`);
  const paragraphs = readFileSync(join(folder, file), 'utf8')
    .replaceAll('\r', '')
    .trim()
    .split(/\n\s*\n/);
  // A longer beginning consists of other terms.
  const start = paragraphs.findIndex((text) => /^\s*(Permission is|Redistribution and) /.test(text));
  const count = start > HEAD_PARAGRAPHS_MAX ? 0 : Math.max(0, start);
  const head = [`${name} ${version} (${license})`, ...paragraphs.slice(0, count)].join('\n\n');
  return { head, terms: paragraphs.slice(count).join('\n\n') };
}
