import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Writes the licences of the packages to which these module ids belong. */
export function writeNotices(file, moduleIds) {
  const folders = moduleIds
    .map((id) => /^\0?(.*\/node_modules\/(?:@[^/]+\/)?[^/.][^/]*)/.exec(id)?.[1])
    .filter(Boolean);
  const notices = [...new Set(folders)].map(noticeOf).sort();
  writeFileSync(file, `${notices.join(`\n${'-'.repeat(80)}\n\n`)}`);
}

function noticeOf(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  if (file === undefined) throw new Error(`${name} ${version} has no licence file`);
  return `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`;
}
