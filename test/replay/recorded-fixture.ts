import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { type Fixture, fixtureText } from '#src/replay/fixture.ts';
import { fixtureOf, recordedTrace } from '#src/replay/fixture-of.ts';
import type { RecordedRun } from '#src/testing/record-runs.ts';
import { temporaryFolder } from '../support/folders.ts';

/** Returns the fixture of a trace, with the mode that `runspan test` chooses. All of its model calls can be replayed. */
export function recordedFixture(runs: readonly RecordedRun[]): Fixture {
  const trace = recordedTrace(
    runs.map(({ attachments = [], ...run }) => ({
      ...run,
      attachments: attachments.map(({ name, bytes }) => {
        return { name, data: Buffer.from(bytes as Uint8Array).toString('base64') };
      }),
    })),
  );
  if (trace === undefined) throw new Error('no trace');
  const { fixture, missing } = fixtureOf(trace, trace.root.error === undefined ? 'strict' : 'failed');
  expect(missing).toEqual([]);
  return fixture;
}

/** Writes the fixture of a trace for one test, and returns the path. */
export function fixtureFile(runs: readonly RecordedRun[]): string {
  const folder = temporaryFolder();
  onTestFinished(folder.remove);
  const file = join(folder.path, 'agent.trace.json');
  writeFileSync(file, fixtureText(recordedFixture(runs)));
  return file;
}
