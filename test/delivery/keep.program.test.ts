import { expect, it } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { moduleText, runNode } from '../support/program.ts';
import { startReceiver } from '../support/receiver.ts';

/** Runs a program that drops all traces by their rate, and returns the runs at the receiver in the order of their names. */
async function ending(code: string, ...later: string[]) {
  const receiver = await startReceiver({ strict: true });
  const environment = {
    RUNSPAN_ENDPOINT: receiver.url,
    RUNSPAN_SAMPLE_RATE: '0',
    RUNSPAN_KEEP: 'error',
    RUNSPAN_DURABILITY: 'spill',
    RUNSPAN_SPOOL_DIR: temporaryFolder().path,
  };
  const ended = await runNode(moduleText(code), environment);
  for (const next of later) await runNode(moduleText(next), environment);
  const runs = await receiver.runs();
  return { code: ended.code, runs: runs.map(({ name, extra }) => `${name} ${extra?.metadata?.sampling}`).sort() };
}

it('at an uncaught exception, an open trace with a failure is written to disk, and the next process sends it', async () => {
  const crash = `
    import { startRun } from 'runspan';
    const root = startRun({ name: 'root' });
    root.child({ name: 'failed' }).fail('broke');
    startRun({ name: 'fine' }).child({ name: 'open' });
    throw new Error('crash');
  `;
  const next = `
    import { setTimeout } from 'node:timers/promises';
    import { startRun, stats } from 'runspan';
    startRun({ name: 'next' }).fail('broke');
    while (stats().sent < 3) await setTimeout(10);
  `;
  const runs = ['failed kept-error', 'next kept-error', 'root kept-error'];
  expect(await ending(crash, next)).toEqual({ code: 1, runs });
});

it('at the end of the program and at a signal, the rules decide on open traces, and all exporters deliver', async () => {
  const program = (last = '') => `
    import { configure, createExporter, startRun } from 'runspan';
    configure({ handleSignals: true, keep: [({ name }) => name === 'chosen'] });
    startRun({ name: 'chosen' }).child({ name: 'child', exporter: createExporter() }).end();
    startRun({ name: 'other' });${last}
  `;
  const runs = ['child kept-function', 'chosen kept-function'];
  const kill = "process.kill(process.pid, 'SIGTERM'); setInterval(() => {}, 1_000);";
  expect([await ending(program()), await ending(program(kill))]).toEqual([0, null].map((code) => ({ code, runs })));
});
