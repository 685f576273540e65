import { posix } from 'node:path';
import { brotliCompressSync } from 'node:zlib';
import { transformWithEsbuild } from 'vite';

/**
 * Stores the chunks with these names compressed, because packages are most of their code. Such a chunk becomes a module
 * with the same exports, which decompresses and runs the code when it is loaded.
 *
 * @param {string[]} names
 * @param {object} minified options of esbuild
 */
export function packedChunks(names, minified) {
  return {
    name: 'packed-chunks',
    async generateBundle(_, bundle) {
      for (const chunk of Object.values(bundle)) {
        if (chunk.type !== 'chunk' || !names.includes(posix.basename(chunk.fileName, '.js'))) continue;
        if (chunk.dynamicImports.length > 0)
          throw new Error(`${chunk.fileName} uses import(), which packed code cannot`);
        const { code } = await transformWithEsbuild(chunk.code, chunk.fileName, { ...minified, format: 'cjs' });
        const packed = chunk.fileName.replace(/\.js$/, '.cjs.br');
        this.emitFile({ type: 'asset', fileName: packed, source: brotliCompressSync(code) });
        chunk.code = loaderOf(chunk, packed);
      }
    },
  };
}

/** Returns the module. It imports the other chunks, because the packed code can only `require`. */
function loaderOf({ fileName, imports, exports }, packed) {
  const own = imports
    .filter((id) => /\.c?js$/.test(id))
    .map((id) => posix.relative(posix.dirname(fileName), id))
    .map((path) => JSON.stringify(path.startsWith('.') ? path : `./${path}`));
  return `import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { compileFunction } from 'node:vm';
import { brotliDecompressSync } from 'node:zlib';
${own.map((path, index) => `import * as own${index} from ${path};\n`).join('')}\
const own = { ${own.map((path, index) => `${path}: own${index}`).join(', ')} };
const require = createRequire(import.meta.url);
const filename = fileURLToPath(new URL('./${posix.basename(packed)}', import.meta.url));
const run = compileFunction(brotliDecompressSync(readFileSync(filename)).toString(), ['require', 'module'], { filename });
const module = {};
run((id) => own[id] ?? require(id), module);
export const { ${exports.join(', ')} } = module.exports;
`;
}
