// Starts the chat for development: when a source file changes, the page reloads and the server restarts. You can add
// any option of the chat except `--port`, for example `npm run dev -- --data ../data`.
import { spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { build, program, STAMP } from './build.mjs';

build(false);
// The compiler below changes `build/`, so the next build must not skip its work.
rmSync(STAMP);
const children = [
  [program('typescript', 'bin/tsc'), '-p', '.', '--watch', '--preserveWatchOutput'],
  ['--watch', 'build/server/main.js', '--port', '4888', ...process.argv.slice(2)],
  [program('vite', 'bin/vite.js'), '--port', '4889', '--logLevel', 'info'],
].map((args) => spawn(process.execPath, args, { cwd: import.meta.dirname, stdio: 'inherit' }));

process.on('SIGINT', () => {
  for (const child of children) child.kill('SIGINT');
});
