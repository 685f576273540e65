export interface Snippet {
  /** `README.md:12`, the line of the opening fence. */
  readonly place: string;
  readonly language: string;
  /** The word after the language, for example the `hello.js` of "js hello.js". */
  readonly file: string | undefined;
  readonly code: string;
  /** The reason in a comment `<!-- not run: reason -->` on the line above. */
  readonly notRun: string | undefined;
  /** A test, and a text that both the test and this output contain: `<!-- tested by test/a.test.ts: text -->`. */
  readonly testedBy: readonly string[] | undefined;
  /** Whether only tests of programs, against peer packages or on other runtimes run the snippet. */
  readonly isOfPeers: boolean;
  /** The folder that the snippet is run in, for example `examples/hello`. */
  readonly folder: string | undefined;
  readonly prints: string | undefined;
  /** Whether the page says "fails and prints": the last command ends with another exit code than 0. */
  readonly fails: boolean;
}

const FENCE = /^ {0,3}```+ *(\S*) *(\S*)/;

/**
 * Returns the code blocks of a Markdown page. A `text` or `console` block below a paragraph with the word "prints" is
 * the output of the previous block.
 */
export function snippetsOf(page: string, markdown: string): Snippet[] {
  const snippets: Snippet[] = [];
  let above = '';
  let open: { place: string; language: string; file: string; above: string; lines: string[] } | undefined;
  for (const [index, line] of markdown.split('\n').entries()) {
    const fence = FENCE.exec(line);
    if (open !== undefined && fence === null) open.lines.push(line);
    else if (open !== undefined) {
      add(snippets, { ...open, code: `${open.lines.join('\n')}\n` });
      open = undefined;
      above = '';
    } else if (fence !== null) {
      const [, language = '', file = ''] = fence;
      open = { place: `${page}:${index + 1}`, language, file, above, lines: [] };
    } else if (line.trim() !== '') above = line.trim();
  }
  if (open !== undefined) throw new Error(`${open.place}: the block has no end`);
  return snippets;
}

interface Block {
  readonly place: string;
  readonly language: string;
  readonly file: string;
  readonly above: string;
  readonly code: string;
}

function add(snippets: Snippet[], { place, language, file, above, code }: Block): void {
  const last = snippets.at(-1);
  if (/^(text|console)$/.test(language) && /\bprints\b/.test(above)) {
    if (last === undefined) throw new Error(`${place}: there is no snippet that could print this`);
    snippets[snippets.length - 1] = { ...last, prints: code, fails: above.includes('fails and prints') };
    return;
  }
  const notRun = /^<!-- not run: (.+) -->$/.exec(above)?.[1];
  const ofPeers = /^<!-- run (?:in (\S+) )?by npm (?:test|run test:(?:peers|runtimes)) -->$/.exec(above);
  snippets.push({
    place,
    language,
    file: file === '' ? undefined : file,
    code,
    notRun,
    testedBy: /^<!-- tested by (\S+): (.+) -->$/.exec(above)?.slice(1),
    isOfPeers: ofPeers !== null,
    folder: ofPeers?.[1],
    prints: undefined,
    fails: false,
  });
}

const MASKS: readonly (readonly [RegExp, string])[] = [
  [/\d{8}T\d{12}Z[0-9a-f-]{32,36}/gi, '<order>'],
  [/\b[0-9a-f]{8}(-?)[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{12}\b/gi, '<id>'],
  [/\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}([.,]\d+)?)?(Z|[+-]\d{2}:?\d{2})?/g, '<time>'],
  [/\b\d{1,2}:\d{2}:\d{2}([.,]\d+)?\b/g, '<time>'],
  [/\bhttp:\/\/(127\.0\.0\.1|localhost|\[::1\]):\d+/g, '<url>'],
  [/(?<![\w.])\d+([.,]\d+)? ?(ns|µs|us|ms|s|min)\b/g, '<duration>'],
  [/[ \t]+/g, ' '],
];

/**
 * Replaces ids, times, durations and local addresses in an output by placeholders, and removes repeated white space and
 * empty lines.
 */
export function masked(output: string): string[] {
  const text = MASKS.reduce((masking, [pattern, name]) => masking.replaceAll(pattern, name), output);
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

/** Masks an output, and leaves out the lines in place of which the page, masked, has a line `…`. */
export function abridged(output: string, shown: readonly string[]): string[] {
  const lines = masked(output);
  for (const [at, line] of shown.entries()) {
    if (line !== '…') continue;
    const next = shown[at + 1];
    const end = next === undefined ? lines.length : lines.indexOf(next, at);
    if (end >= at) lines.splice(at, end - at, line);
  }
  return lines;
}

/** Returns the commands of a `sh` snippet, without comments and with continued lines joined. */
export function commandsOf(code: string): string[] {
  return code
    .replaceAll(/\\\n\s*/g, '')
    .split(/\n|&&/)
    .map((line) => line.replace(/(^|\s)#.*$/, '').trim())
    .filter((line) => line !== '');
}
