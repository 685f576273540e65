import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { defineConfig } from 'vitepress';
import { githubAnchor, llmsText, navigation } from '../navigation.ts';

const manifest = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'));
const repository = manifest.repository.url.replace(/^git\+|\.git$/g, '');
const groups = navigation();
const pages = groups.flatMap((group) => group.pages);
const icon = `data:image/svg+xml,${encodeURIComponent(readFileSync(new URL('../../../src/viewer/icon.svg', import.meta.url), 'utf8'))}`;

export default defineConfig({
  srcDir: '..',
  srcExclude: ['site/**'],
  outDir: './dist',
  title: 'runspan',
  description: manifest.description,
  rewrites: { 'README.md': 'index.md', 'reference/README.md': 'reference/index.md' },
  cleanUrls: true,
  head: [['link', { rel: 'icon', href: icon }]],
  metaChunk: true,
  transformPageData: (page) => {
    page.description = pages.find(({ path }) => path === page.filePath)?.sentence ?? page.description;
    if (page.filePath.startsWith('reference/')) page.frontmatter.editLink = false;
  },
  markdown: {
    anchor: { slugify: githubAnchor },
    config: (md) => md.core.ruler.push('repository-links', linkToRepository),
  },
  themeConfig: {
    logo: icon,
    search: { provider: 'local' },
    outline: [2, 3],
    sidebar: groups.map(({ title, pages }) => ({
      text: title,
      collapsed: title === 'Reference',
      items: pages.map(({ path, title }) => ({ text: title, link: `/${path.replace(/(README)?\.md$/, '')}` })),
    })),
    socialLinks: [{ icon: 'github', link: repository }],
    editLink: { pattern: `${repository}/edit/main/docs/:path` },
  },
  // Node finds Vue from the built modules. Vite does not find it from the pages, which are outside of this folder.
  vite: {
    build: { chunkSizeWarningLimit: 2_000 },
    plugins: [{ name: 'external-vue', enforce: 'pre', resolveId: externalVue }],
  },
  buildEnd: ({ outDir }) => {
    for (const { path } of pages) {
      mkdirSync(dirname(join(outDir, path)), { recursive: true });
      copyFileSync(new URL(`../../${path}`, import.meta.url), join(outDir, path));
    }
    writeFileSync(join(outDir, 'llms.txt'), llmsText(manifest.name, manifest.description, groups));
    writeFileSync(join(outDir, 'llms-full.txt'), pages.map(({ text }) => text).join('\n'));
  },
});

/** Points links to files outside of docs/ to the repository, and links to README.md to the index page of its folder. */
function linkToRepository({ tokens, env }) {
  const links = tokens.flatMap(({ children }) => children ?? []).filter(({ type }) => type === 'link_open');
  for (const link of links) {
    const href = link.attrGet('href');
    if (/^([a-z][\w+.-]*:|#|\/)/i.test(href)) continue;
    const target = posix.join('docs', posix.dirname(env.relativePath), href);
    const isPage = target.startsWith('docs/') && /\.md(#|$)/.test(target);
    if (isPage) link.attrSet('href', href.replace(/README\.md(?=#|$)/, 'index.md'));
    else link.attrSet('href', `${repository}/blob/main/${target}`);
  }
}

function externalVue(id, _importer, { ssr }) {
  return ssr && /^vue(\/|$)/.test(id) ? { id, external: true } : null;
}
