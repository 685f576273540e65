import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { transformWithEsbuild } from 'vite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { root } from '../support/folders.ts';
import { type Ended, startProgram, startRunspan } from '../support/program.ts';
import { type Models, startModels } from './zero-code/models.ts';

const folder = join(root, 'test/peers/zero-code');
const programs = join(folder, 'programs');

let models: Models;
beforeAll(async () => {
  models = await startModels();
});
afterAll(() => models?.close());

/** Runs a command by itself, and under `runspan dev`. */
async function bothWays(command: readonly string[]): Promise<[alone: Ended, traced: Ended]> {
  return Promise.all([
    startProgram(command, models.env, folder).ended,
    startRunspan(['dev', '--port', '0', '--', ...command], models.env, folder).ended,
  ]);
}

/** The output of `runspan dev` without durations, the address and the drawn traces. */
function withoutTraces(stdout: string, traces: readonly string[]): string {
  const masked = stdout.replace(/^runspan listens on \S+\n/, '').replaceAll(/ · [\d.]+ m?s\b/g, '');
  return traces.reduce((text, trace) => text.replace(`\n${trace}\n`, ''), masked);
}

/** Expects that a command prints and ends as without runspan, and that these traces are drawn. */
async function expectTraces(command: readonly string[], traces: readonly string[]): Promise<void> {
  const [alone, traced] = await bothWays(command);
  expect({ ...traced, stdout: withoutTraces(traced.stdout, traces) }).toEqual(alone);
}

/** The arguments of Node that run a program as CommonJS. */
async function asCommonJs(name: string): Promise<string[]> {
  const text = readFileSync(join(programs, name), 'utf8');
  return ['--input-type=commonjs', '-e', (await transformWithEsbuild(text, name, { format: 'cjs' })).code];
}

const TRACES: Readonly<Record<string, readonly string[]>> = {
  'openai-chat.mjs': [],
  'openai-responses.mjs': [],
  'anthropic-stream.mjs': [],
  'ai-sdk-agent.mjs': [],
  'langgraph.mjs': [],
  'gemini-chat.mjs': [],
  'mistral.mjs': [],
  'ollama.mjs': [],
  'raw-fetch.mjs': [],
};

describe.concurrent('under runspan dev, a program that does not import runspan', () => {
  it.each(Object.entries(TRACES))('%s has the same output and exit code, and its traces', async (name, traces) => {
    await expectTraces([process.execPath, join(programs, name)], traces);
  });

  it.each(Object.entries(TRACES))('%s as CommonJS does, too', async (name, traces) => {
    await expectTraces([process.execPath, ...(await asCommonJs(name))], traces);
  });

  it.each([
    ['npm', 'start', '--silent'],
    ['npx', 'tsx', 'programs/typed.ts'],
    ['npx', 'vite-node', 'programs/typed.ts'],
  ])('started by %s %s, too', async (...command) => {
    await expectTraces(command, []);
  });

  it('in Python, which sends OTLP', async () => {
    await expectTraces(['python3', join(programs, 'sends-otlp.py')], ['answer · chain']);
  });
});
