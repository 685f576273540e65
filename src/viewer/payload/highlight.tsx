import hljs from 'highlight.js/lib/core';
import bash from 'highlight.js/lib/languages/bash';
import javascript from 'highlight.js/lib/languages/javascript';
import json from 'highlight.js/lib/languages/json';
import python from 'highlight.js/lib/languages/python';
import sql from 'highlight.js/lib/languages/sql';
import typescript from 'highlight.js/lib/languages/typescript';
import xml from 'highlight.js/lib/languages/xml';
import yaml from 'highlight.js/lib/languages/yaml';
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { Text } from '../elements/text.tsx';

const LANGUAGES = { bash, javascript, json, python, sql, typescript, xml, yaml };
for (const [name, language] of Object.entries(LANGUAGES)) hljs.registerLanguage(name, language);

/** Maximum length of code to highlight. Longer code would need too many elements and slow down the page. */
const LENGTH_MAX = 20_000;

interface TokenNode {
  readonly scope?: string;
  readonly children: readonly (TokenNode | string)[];
}

/** Code with syntax highlighting. Unknown languages are shown as plain text. */
export default function Highlighted({ text, language }: { text: string; language: string }): JSX.Element {
  const tree = useMemo(() => treeOf(text, language.trim().split(/\s/, 1)[0] ?? ''), [text, language]);
  return tree === undefined ? <Text value={text} /> : elementsOf(tree);
}

function treeOf(text: string, language: string): TokenNode | undefined {
  if (text.length > LENGTH_MAX || hljs.getLanguage(language) === undefined) return undefined;
  const { _emitter } = hljs.highlight(text, { language, ignoreIllegals: true });
  return (_emitter as unknown as { rootNode: TokenNode }).rootNode;
}

/** Converts tokens to elements. The library's HTML is not used, because a bug in it could then run scripts. */
function elementsOf({ scope, children }: TokenNode): JSX.Element {
  const content = children.map((child) => (typeof child === 'string' ? <Text value={child} /> : elementsOf(child)));
  return <span class={scope === undefined ? '' : `code-${scope.split(/[.:]/, 1)[0]}`}>{content}</span>;
}
