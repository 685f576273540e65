import { expect, it } from 'vitest';
import { llmsText, navigation } from '../../docs/site/navigation.ts';
import { filesUnder, guides } from './repository.ts';

const groups = navigation();
const pages = groups.flatMap((group) => group.pages);

it('the navigation of the site has each page once, in a group', () => {
  const reference = filesUnder('docs/reference', '.md').map((path) => `docs/reference/${path}`);
  const all = [...guides, ...reference].filter((path) => path !== 'docs/README.md');
  expect(pages.map(({ path }) => `docs/${path}`).sort()).toEqual(all.sort());
  expect(groups.map(({ title }) => title)).toEqual(expect.arrayContaining(['Start', 'Reference']));
});

it('each page starts with a title and a sentence, which llms.txt contains', () => {
  expect(pages.filter(({ title, sentence }) => title === '' || sentence === '').map(({ path }) => path)).toEqual([]);
  const lines = llmsText('runspan', 'Tracing.', groups).split('\n');
  expect(lines.slice(0, 3)).toEqual(['# runspan', '', '> Tracing.']);
  expect(lines).toContain('- [runspan/openai](reference/openai.md): Traces calls to the openai package.');
});
