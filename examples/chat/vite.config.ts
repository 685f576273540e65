import { defineConfig } from 'vite';

// Builds the page. The chat server serves the built files. In development, Vite serves the sources, and the chat server
// only the endpoints.
export default defineConfig({
  root: 'page',
  base: './',
  logLevel: 'warn',
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none' },
  server: { host: '127.0.0.1', proxy: { '/api': `http://127.0.0.1:${process.env.CHAT_PORT ?? 4888}` } },
  build: {
    outDir: '../build/page',
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
  },
});
