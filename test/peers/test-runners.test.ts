// The set-ups for Vitest and Jest in docs/testing.md.
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { root } from '../support/folders.ts';
import { startProgram } from '../support/program.ts';
import { startReceiver } from '../support/receiver.ts';
import { compile, guide, projectWith } from './guides.ts';
import { laterNode } from './later-node.ts';

const today = join(root, 'test/peers/today');
const formats = join(root, 'test/peers/module-formats');
const files = guide('docs/testing.md').filter(({ file = 'test/' }) => !file.startsWith('test/'));
const vitestFiles = [
  // `sets.test.ts` runs the test of a set.
  ...files.filter(({ file = '' }) => !/^jest\.|^refunds\./.test(file)),
  { file: 'package.json', code: '{ "type": "module" }' },
  {
    file: 'concurrent.test.js',
    code: `
      import { traceable, withExporter } from 'runspan';
      import { recordRuns, snapshotOf } from 'runspan/testing';
      import { expect, test } from 'vitest';
      import { answer } from './answer.js';
      test.concurrent.each(['tea?', 'coffee?'])('%s', async (question) => {
        const recorder = recordRuns();
        await withExporter(recorder.exporter, () => answer(question));
        recorder.stop();
        const children = [{ name: 'search' }, { name: 'model' }];
        expect(snapshotOf(recorder)).toMatchObject([{ name: 'answer', inputs: { input: question }, children }]);
      });
      test('sends runs', () => traceable(() => 'ok', { name: 'sent' })());
    `,
  },
];
const jestFiles = [
  ...files.filter(({ file = '' }) => file.startsWith('jest.')),
  { file: 'package.json', code: '{}' },
  {
    file: 'greet.test.js',
    code: `
      const { traceable } = require('runspan');
      const { recordRuns } = require('runspan/testing');
      const greet = traceable(() => 'Hello', { name: 'sent' });
      test('records runs', () => {
        const recorder = recordRuns();
        greet();
        recorder.stop();
        expect(recorder).toHaveRun({ name: 'sent', times: 1 });
      });
      test('sends runs', () => void greet());
    `,
  },
];

it.each([
  ['Vitest', vitestFiles, today, ['vitest/vitest.mjs', 'run'], /Tests .*5 passed/],
  ['Jest', jestFiles, formats, ['jest/bin/jest.js', '--ci'], /Tests: .*2 passed, 2 total/],
] as const)(
  'with the set-up for %s, the matcher works, and runs outside of recordRuns are sent',
  async (_, own, folder, [runner, option], summary) => {
    const receiver = await startReceiver();
    const project = projectWith(own, folder);
    const env = { RUNSPAN_ENDPOINT: receiver.url, NO_COLOR: '1' };
    const command = [laterNode(), join(folder, 'node_modules', runner), option];
    const { code, stdout, stderr } = await startProgram(command, env, project).ended;
    expect(stdout + stderr).toMatch(summary);
    expect(code).toBe(0);
    expect((await receiver.runs()).map(({ name }) => name)).toEqual(['sent']);
  },
);

it('the type of the matcher applies', () => {
  const project = projectWith(vitestFiles, today);
  const options = '--noEmit --module nodenext --lib es2023,esnext.disposable --allowJs';
  compile(project, options, ['vitest.setup.ts', 'vitest.config.ts', 'answer.test.ts', 'deploy.test.ts']);
});
