import { describe, expect, test } from 'vitest';
import { record } from '../instrument/recorder.ts';
import { leftOpen, programs, seenBy } from './sdk-programs.ts';
import { sdks } from './sdks.ts';

describe.each(sdks)('a wrapped client of %s behaves like a bare client with', (_, sdk) => {
  test.each(Object.entries(programs[sdk.place] ?? {}))('%s', async (name, program) => {
    const recorder = record();
    const bare = await seenBy(program, sdk, (client) => client);
    expect(recorder.runs).toEqual([]);
    const traced = await seenBy(program, sdk, sdk.wrap);
    expect(traced).toEqual(bare);
    expect(bare.log.length + bare.requests.length).toBeGreaterThan(0);
    expect(recorder.runs.every((run) => run.end_time !== undefined)).toBe(!leftOpen.has(name));
  });
});
