import type { LocalModel } from '../../examples/local-model/server.js';
import { type Ended, moduleText, runNode } from '../support/program.ts';

const SET_UP = `
  import Anthropic from '@anthropic-ai/sdk';
  import { wrapAnthropic } from 'runspan/anthropic';
  import { recordRuns } from 'runspan/testing';
  const recorder = recordRuns();
  const bare = new Anthropic({ apiKey: 'a', baseURL: process.env.MODEL, maxRetries: 0, logLevel: 'off' });
  const client = process.env.TRACED ? wrapAnthropic(bare) : bare;
  const ask = (model) => ({ model, max_tokens: 9, messages: [{ role: 'user', content: 'a' }] });
`;

/** Runs lines with a `client`, traced if the environment says so, in a process of their own and against the built package. */
export async function runAnthropicProgram(
  program: string,
  { url }: LocalModel,
  env: Record<string, string> = {},
): Promise<Ended> {
  const ended = await runNode(['--expose-gc', ...moduleText(SET_UP + program)], { MODEL: url, ...env });
  // Frames of stacks differ, as do the places in code that Node shows.
  return { ...ended, stderr: ended.stderr.replaceAll(/^\s+at .*\n|^(file|node):.*\n.*\n\s*\^+\n/gm, '') };
}
