import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../../build/server/main.js', import.meta.url));

/** Starts the compiled chat without a model and without a trace service. */
export function startChat(argv, stderr = 'inherit', program = MAIN) {
  const { OPENAI_API_KEY, OPENAI_BASE_URL, RUNSPAN_ENDPOINT, ...env } = process.env;
  return spawn(process.execPath, [program, ...argv], { env, stdio: ['ignore', 'pipe', stderr] });
}

/** Options that select free ports and no delay between words. */
export const AT_ONCE = ['--port', '0', '--trace-port', '0', '--word-delay', '0'];

/** Reads the first lines that the program prints: its address, the address of the traces, and the model. */
export async function greetingOf(chat) {
  const lines = [];
  for await (const line of createInterface({ input: chat.stdout })) {
    lines.push(line);
    if (lines.length === 3) break;
  }
  const [url = '', traces = ''] = lines.map((line) => /http:\S+$/.exec(line)?.[0]);
  return { lines, url, traces };
}
