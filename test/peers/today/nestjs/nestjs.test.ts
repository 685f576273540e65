import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { traced, traceMethods } from '#src/index.ts';
import { record } from '../../../instrument/recorder.ts';
import type { start as Start } from './application.ts';

const tsc = createRequire(import.meta.url)
  .resolve('typescript/package.json')
  .replace('package.json', 'bin/tsc');
const folder = fileURLToPath(new URL('.', import.meta.url));
// Below the folder with the installed packages, so that the compiled application can resolve them.
const output = `${folder}node_modules/.cache/application/`;

const requests = [
  ['GET', 'plain'],
  ['GET', 'roles'],
  ['POST', 'code'],
  ['GET', 'double/21?by=2'],
  ['GET', 'double/none?by=2'],
  ['DELETE', 'later'],
] as const;

describe('a controller of NestJS', () => {
  let started: Awaited<ReturnType<typeof Start>>;
  beforeAll(async () => {
    rmSync(output, { recursive: true, force: true });
    execFileSync(process.execPath, [tsc, '-p', folder, '--outDir', output], { stdio: 'inherit' });
    const { start } = (await import(`${output}application.js`)) as { start: typeof Start };
    started = await start({ traced, traceMethods });
  });
  afterAll(() => started.app.close());

  const answersOf = async (controller: string): Promise<unknown[]> => {
    const answers: unknown[] = [];
    for (const [method, path] of requests) {
      const response = await fetch(`${started.url}/${controller}/${path}`, { method });
      answers.push([method, path, response.status, (await response.text()).replace(controller, 'WORD')]);
    }
    return answers;
  };

  test('responds according to its guards, status codes, pipes and routes', async () => {
    expect(await answersOf('untraced')).toEqual([
      ['GET', 'plain', 403, expect.stringContaining('Forbidden')],
      ['GET', 'roles', 200, 'WORD roles'],
      ['POST', 'code', 418, 'WORD code'],
      ['GET', 'double/21?by=2', 200, '[WORD 42 number]'],
      ['GET', 'double/none?by=2', 400, expect.stringContaining('numeric string is expected')],
      ['DELETE', 'later', 202, '{"word":"WORD"}'],
    ]);
  });

  test.each([
    ['`@traced` above its decorators', 'above'],
    ['`@traced` between its decorators', 'between'],
    ['`@traced` below its decorators', 'below'],
    ['`@traced` at all of these places', 'everywhere'],
    ['`@traced({ name })` above its decorators', 'withOptions'],
    ['traceMethods', 'methods'],
    ['`@traced` between its decorators and traceMethods', 'both'],
  ])('responds in the same way with %s, and is traced', async (_title, controller) => {
    const untraced = await answersOf('untraced');
    const recorder = record();
    expect(await answersOf(controller)).toEqual(untraced);
    const name = (own: string): string => (controller === 'withOptions' ? 'named' : own);
    expect(recorder.runs.map((run) => run.name)).toEqual(['roles', 'code', 'double', 'later'].map(name));
  });
});
