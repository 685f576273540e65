// An unhandled rejection stays unhandled, is raised once, and ends the program in the same way.
import { describe, expect, test } from 'vitest';
import { record } from '../instrument/recorder.ts';
import { moduleText, runNode } from '../support/program.ts';
import { localModel } from './local-openai.ts';
import { rejectionsOf, ways } from './rejections.ts';
import { sdks } from './sdks.ts';

describe.each(sdks)('an unhandled rejection of %s', (_, sdk) => {
  test.each(Object.entries(ways))('is the same with a wrapped client: %s', async (_, way) => {
    record();
    const model = await localModel();
    const bare = await rejectionsOf(way, sdk, sdk.make(model, { maxRetries: 0 }));
    expect(bare.length).toBeGreaterThan(0);
    expect(await rejectionsOf(way, sdk, sdk.wrap(sdk.make(model, { maxRetries: 0 })))).toEqual(bare);
  });
});

const setUp = `
  import Anthropic from '@anthropic-ai/sdk';
  import { wrapAnthropic } from 'runspan/anthropic';
  import { recordRuns } from 'runspan/testing';
  recordRuns();
  const bare = new Anthropic({ apiKey: 'a', baseURL: process.env.MODEL, maxRetries: 0, logLevel: 'off' });
  const { messages } = process.env.TRACED ? wrapAnthropic(bare) : bare;
  const body = { model: 'fail-400', max_tokens: 9, messages: [{ role: 'user', content: 'a' }] };
`;

test.each([
  ['an unhandled', 'messages.create(body);'],
  ['an awaited', 'await messages.create(body);'],
  ["a helper's", "messages.stream(body).on('text', () => {});"],
])('%s rejection ends a program in the same way', async (_, program) => {
  const { url } = await localModel();
  const end = async (env: Record<string, string>) => {
    const ended = await runNode(moduleText(setUp + program), { MODEL: url, ...env });
    // The frames of the stack and the quoted source differ.
    return { ...ended, stderr: ended.stderr.replaceAll(/^\s+at .*\n|^(file|node):.*\n.*\n\s*\^+\n/gm, '') };
  };
  const [bare, traced] = await Promise.all([end({}), end({ TRACED: 'yes' })]);
  expect(traced).toEqual(bare);
  expect(bare.code).toBe(1);
  expect(bare.stderr).toContain('BadRequestError: 400');
});
