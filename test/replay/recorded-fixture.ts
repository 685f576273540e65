import { join } from 'node:path';
import { expect } from 'vitest';
import { recordFetch } from '#src/integrations/fetch/record-fetch.ts';
import { type Fixture, fixtureText } from '#src/replay/fixture.ts';
import { fixtureOf, recordedTrace } from '#src/replay/fixture-of.ts';
import { type RecordedRun, type RecordOptions, recordRuns } from '#src/testing/record-runs.ts';
import { environmentOf } from '../support/environment.ts';
import { testFolder } from '../support/test-folder.ts';

export async function recordedProgram(
  run: () => Promise<unknown>,
  options: RecordOptions = {},
  variables = { RUNSPAN_DEV: '{"exchanges":true}' },
): Promise<RecordedRun[]> {
  environmentOf(variables);
  const recorder = recordRuns(options);
  const stop = recordFetch();
  await run().finally(stop).finally(recorder.stop);
  return recorder.runs;
}

/** Returns the fixture of a trace, with the mode that `runspan test` chooses. All of its model calls can be replayed. */
export function recordedFixture(runs: readonly RecordedRun[]): Fixture {
  const { fixture, missing } = fixtureFrom(runs);
  expect(missing).toEqual([]);
  return fixture;
}

/** Returns the fixture of a trace, and the reasons for which model calls cannot be replayed. `failed` is the failed step. */
export function fixtureFrom(runs: readonly RecordedRun[], failed?: RecordedRun): ReturnType<typeof fixtureOf> {
  const trace = recordedTrace(
    runs.map(({ attachments = [], ...run }) => ({
      ...run,
      attachments: attachments.map(({ name, bytes }) => {
        return { name, data: Buffer.from(bytes as Uint8Array).toString('base64') };
      }),
    })),
  );
  const step = trace.runs.find(({ id }) => id === failed?.id);
  return fixtureOf(trace, trace.root.error === undefined ? 'strict' : 'failed', step);
}

/** Writes the fixture of a trace for one test, and returns the path. */
export function fixtureFile(runs: readonly RecordedRun[]): string {
  return join(testFolder({ 'agent.trace.json': fixtureText(recordedFixture(runs)) }), 'agent.trace.json');
}
