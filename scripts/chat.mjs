#!/usr/bin/env node
// npm run chat [-- options]         builds and starts the chat application
// npm run chat -- copy FOLDER       copies it, see scripts/copy-chat.mjs
import { build, run } from './run.mjs';

const [name, ...args] = process.argv.slice(2);
if (!build()) process.exitCode = 1;
else if (name === 'copy') run(['scripts/copy-chat.mjs', ...args]);
// The chat runs in this process, so that it receives the signals of the terminal.
else if (run(['scripts/build-chat.mjs'])) await import('../examples/chat/build/server/main.js');
