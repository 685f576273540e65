import { describe, expect, test } from 'vitest';
import { wrapOpenAI } from '../../src/integrations/openai/client.ts';
import { record } from '../instrument/recorder.ts';
import { bareClient } from './local-openai.ts';
import { leftOpen, programs, seenBy } from './openai-programs.ts';

describe('a wrapped client does what the bare one does, with', () => {
  test.each(Object.entries(programs))('%s', async (name, program) => {
    const bare = await seenBy(program, bareClient);
    const recorder = record();
    const traced = await seenBy(program, (model) => wrapOpenAI(bareClient(model)));
    expect(traced).toEqual(bare);
    expect(bare.log.length + bare.requests.length).toBeGreaterThan(0);
    expect(recorder.runs.every((run) => run.end_time !== undefined)).toBe(!leftOpen.has(name));
  });
});
