/** Returns llms.txt: a link to each page, with its first sentence. https://llmstxt.org */
export function llmsText({ name, description }, groups) {
  const sections = groups.map(({ title, pages }) => {
    const links = pages.map(({ path, title, sentence }) => `- [${title}](${path}): ${sentence}`);
    return `## ${title}\n\n${links.join('\n')}\n`;
  });
  return [`# ${name}\n`, `> ${description}\n`, ...sections].join('\n');
}

/** Returns llms-full.txt: the text of all pages. */
export function llmsFullText({ name, description }, groups) {
  const texts = groups.flatMap(({ pages }) => pages.map(({ text }) => text));
  return [`# ${name}\n\n> ${description}\n`, ...texts].join('\n');
}
