import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync } from 'node:zlib';
import { build } from 'vite';

const root = fileURLToPath(new URL('..', import.meta.url));

/**
 * Builds the receiver's page and the page of a saved trace into a folder. The files are compressed, because they would
 * otherwise be almost a tenth of the installed package. Returns the ids of the bundled modules.
 */
export async function buildPage(folder) {
  const page = await bundle();
  const saved = await bundle({
    rollupOptions: { input: join(root, 'src', 'viewer', 'saved.html'), output: { inlineDynamicImports: true } },
  });
  mkdirSync(join(folder, 'assets'), { recursive: true });
  const write = (name, content) => writeFileSync(join(folder, `${name}.br`), brotliCompressSync(content));
  for (const { fileName, source, code } of page.output) write(fileName, source ?? code);
  write('saved.html', inlined(saved.output));
  return [...page.output, ...saved.output].flatMap(({ moduleIds = [] }) => moduleIds);
}

/** Leaves out the parser and the renderers of `marked`. The page uses only its lexer, but the module's last statements use all of it. */
const lexerOnly = {
  name: 'lexer-only',
  transform: (code, id) =>
    id.endsWith('marked.esm.js') ? code.replace(AFTER_CLASSES, ';export{$1 as Lexer};') : undefined,
};

/** From the instance behind the function `marked` to the end of the module. */
const AFTER_CLASSES = /;var \w+=new \w+;function (?=\w+\(\w+,\w+\)\{return \w+\.parse\().*export\{.*?(\w+) as Lexer.*/s;

function bundle(options) {
  return build({
    configFile: false,
    root: join(root, 'src', 'viewer'),
    base: './',
    logLevel: 'warn',
    plugins: [lexerOnly],
    esbuild: { jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none' },
    build: {
      write: false,
      target: 'es2022',
      modulePreload: { polyfill: false },
      assetsInlineLimit: 0,
      reportCompressedSize: false,
      ...options,
    },
  });
}

/**
 * Joins the page of a saved trace to one file. Its policy allows only the file's own script and style, by their hashes,
 * and no requests. The text `"the trace"` stands for the trace.
 */
function inlined(output) {
  const [html, script, style] = ['.html', '.js', '.css'].map((end) => {
    const [file, ...others] = output.filter(({ fileName }) => fileName.endsWith(end));
    if (file === undefined || others.length > 0) throw new Error(`Expected one ${end} file of the saved trace`);
    return `${file.source ?? file.code}`.trim();
  });
  // In a script, HTML gives these characters a meaning.
  const code = script.replaceAll('<!--', '\\x3C!--').replaceAll(/<(?=\/?script)/gi, '\\x3C');
  const policy = [
    "default-src 'none'",
    `script-src ${hashOf(code)}`,
    `style-src ${hashOf(style)}`,
    'img-src data:',
    "connect-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
  ];
  return html
    .replace('<!--policy-->', `<meta http-equiv="content-security-policy" content="${policy.join('; ')}" />`)
    .replace(/\s*<script type="module"[^>]*><\/script>/, '')
    .replace(/<link rel="stylesheet"[^>]*>/, () => `<style>${style}</style>`)
    .replace('</body>', () => `<script type="module">${code}</script>\n  </body>`);
}

function hashOf(text) {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}
