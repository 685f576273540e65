import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { root } from '../support/folders.ts';
import { startRunspan } from '../support/program.ts';
import { testFolder } from '../support/test-folder.ts';

interface Part {
  readonly part: string;
  readonly endpoints: readonly number[];
  readonly rules: readonly number[];
  readonly checks: readonly number[];
}

it('the demo finds that all endpoints are answered, all rules are kept and all runs arrive', async () => {
  const { code, stdout, stderr } = await startRunspan(['demo', '--json'], {}, root, 110_000).ended;
  expect(stderr).toBe('');
  const { ok, parts, load, differences } = JSON.parse(stdout);
  expect({ code, ok, differences }).toEqual({ code: 0, ok: true, differences: [] });
  const names = ['control plane', 'agent server', 'feedback', 'ingestion', 'chat', 'tracing', 'delivery'];
  expect(parts.map(({ part }: Part) => part)).toEqual(names);
  expect(parts.map(({ endpoints: [, listed] }: Part) => listed)).toEqual([8, 3, 2, 3, 7, 0, 0]);
  for (const { endpoints, rules, checks } of parts as Part[])
    for (const [some, all] of [endpoints, rules, checks]) expect(some).toBe(all);
  for (const { rules, checks } of parts.slice(0, 5)) expect(Math.min(rules[1], checks[1])).toBeGreaterThan(0);
  expect(load.created).toBeGreaterThan(0);
  expect([load.sent + load.dropped, load.received]).toEqual([load.created, load.created]);
}, 120_000);

it('the demo names the first difference, and exits with 1', async () => {
  // Spans start, and never end.
  const tracer = `import { createTracer as create } from '${pathToFileURL(join(root, 'scripts/demo/tracer.mjs'))}';
    globalThis[Symbol.for('runspan.demo.tracer')] = (processor) => create({
      onStart: (...given) => processor.onStart(...given), onEnd() {}, async forceFlush() {}, async shutdown() {} });`;
  const hook = pathToFileURL(join(testFolder({ 'tracer.mjs': tracer }), 'tracer.mjs'));
  const env = { NODE_OPTIONS: `--import ${hook}` };
  const { code, stdout, stderr } = await startRunspan(['demo'], env, root, 110_000).ended;
  expect(stderr).toMatch(/^demo: created = sent \+ dropped: /);
  expect(stdout).toMatch(/^control plane +8\/8 +(\d+)\/\1 +(\d+)\/\2 +\d+$/m);
  expect(stdout).toMatch(/^tracing +– +– +8\/9 /m);
  expect(code).toBe(1);
}, 120_000);
