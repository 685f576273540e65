// Kills the agent with kill -9 in the middle of its work. When it is started again, the run of every call that had
// returned arrives.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createReceiver } from 'runspan/receiver';

const receiver = await createReceiver();
const spoolDir = mkdtempSync(join(tmpdir(), 'runspan-crash-'));
const env = {
  ...process.env,
  RUNSPAN_ENDPOINT: receiver.url,
  RUNSPAN_DURABILITY: 'write-ahead',
  RUNSPAN_SPOOL_DIR: spoolDir,
};
const returned = new Set();

const signal = await life(1, 1_000_000, (n, child) => {
  if (n === 500) child.kill('SIGKILL');
});
console.log(`${signal}: ${await counts()}`);

// Another process takes over a killed process's runs 10 seconds after its last heartbeat. An agent that keeps running
// needs no such pause: it searches again 11 seconds after its first search, and then every minute.
await delay(11_000);
await life(1_000_001, 1_000_001);
console.log(`started again: ${await counts()}`);

await receiver.close();
rmSync(spoolDir, { recursive: true });

/** Runs the agent until it ends, and returns the signal that ended it. */
async function life(first, last, told = () => {}) {
  const agent = fork(fileURLToPath(new URL('agent.js', import.meta.url)), [first, last], { env });
  agent.on('message', (n) => {
    returned.add(n);
    told(n, agent);
  });
  const [[, signal]] = await Promise.all([once(agent, 'exit'), once(agent, 'disconnect')]);
  return signal;
}

async function counts() {
  const runs = await receiver.runs();
  const arrived = new Set(runs.filter(({ end_time }) => end_time !== undefined).map(({ inputs }) => inputs.n));
  const ofReturned = [...returned].filter((n) => arrived.has(n)).length;
  return `${returned.size} calls have returned, ${ofReturned} of their runs have arrived`;
}
