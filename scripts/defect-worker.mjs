/**
 * Runs test files of the folder that it is started in, again and again, as `scripts/test-defects.mjs` asks for by messages
 * `{ changed, tests }`: the one file that may have another text than before, and what to run. Answers with the outcome. Vitest stays, so that
 * a run costs the tests and not the start; each file of tests has a process of its own all the same.
 */
import { createVitest } from 'vitest/node';

/** A test that a defect has made wait for ever need not wait for so long as one on a busy machine. */
const TEST_TIMEOUT_MS = 15_000;

const vitest = await createVitest('test', {
  config: process.argv[2],
  watch: false,
  reporters: [{}],
  testTimeout: TEST_TIMEOUT_MS,
});
process.on('message', async ({ changed, tests }) => {
  vitest.invalidateFile(changed);
  const files = await vitest.globTestSpecifications(tests);
  const { testModules } = await vitest.runTestSpecifications(files);
  // It is put back before the next run.
  vitest.invalidateFile(changed);
  // Those of earlier runs are among the results too.
  const wanted = new Set(files.map(({ moduleId }) => moduleId));
  process.send(outcomeOf(testModules.filter(({ moduleId }) => wanted.has(moduleId))));
});
process.on('disconnect', () => process.exit());

/** `passed`, `failed` when an assertion has, or what else happened: that would catch any mistake, and shows nothing. */
function outcomeOf(testModules) {
  const all = testModules.map((module) => ({
    isFailed: module.state() === 'failed',
    tests: [...module.children.allTests()],
    failed: [...module.children.allTests('failed')],
  }));
  // A file fails without a test where it cannot be read, or where a hook, such as a build, has failed and left out its tests.
  const isLoaded = all.every(({ isFailed, tests, failed }) => tests.length > 0 && isFailed === failed.length > 0);
  if (all.length === 0 || !isLoaded) return 'not loaded';
  return all.some(({ isFailed }) => isFailed) ? 'failed' : 'passed';
}
