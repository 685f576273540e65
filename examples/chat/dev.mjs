// Starts the chat for development: the page reloads and the server restarts when a source changes. Options of the
// chat can be added: `npm run dev -- --data ../data`.
import { spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { build, program, STAMP } from './build.mjs';

const args = process.argv.slice(2);
const { values } = parseArgs({ args, strict: false, options: { port: { type: 'string', default: '4888' } } });
build(false);
// The compiler below changes `build/`, so the next build must not skip its work.
rmSync(STAMP);
// Before Node 22.15, the script `bin/tsc` starts the compiler as a child process, which a signal to the script does not
// end.
const { default: compiler } = await import(pathToFileURL(program('typescript', 'lib/getExePath.js')).href);
const children = [
  [compiler(), '-p', '.', '--watch', '--preserveWatchOutput'],
  [process.execPath, '--watch', 'build/server/main.js', ...args],
  [process.execPath, program('vite', 'bin/vite.js'), '--port', '4889', '--logLevel', 'info'],
].map(([file, ...options]) => {
  const env = { ...process.env, CHAT_PORT: values.port };
  return spawn(file, options, { cwd: import.meta.dirname, env, stdio: 'inherit' });
});

let isStopping = false;
const stop = () => {
  isStopping = true;
  for (const child of children) child.kill();
};
process.on('SIGINT', stop);
process.on('SIGTERM', stop);
// If one process ends, the others are not needed.
for (const child of children) {
  child.on('exit', (code) => {
    // The code is null if a signal ended the child.
    if (!isStopping) process.exitCode = code ?? 1;
    stop();
  });
}
