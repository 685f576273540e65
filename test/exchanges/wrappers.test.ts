// Calls of the SDKs whose clients are wrapped.
import { expect, test } from 'vitest';
import { record } from '../instrument/recorder.ts';
import { onlyRun } from '../integrations/local-openai.ts';
import { expectRun, serve } from './run.ts';
import { callSdk, hasSdk } from './sdks.ts';
import { rows } from './table.ts';

test.each(rows.filter(({ exchange }) => hasSdk(exchange)))('$title is recorded', async ({ exchange, isStreamed }) => {
  await serve(exchange, isStreamed);
  const recorder = record();
  await callSdk(exchange, isStreamed, true);
  const run = onlyRun(recorder.runs);
  expectRun(run, exchange, isStreamed);
  const recorded_by = [exchange.provider === 'anthropic' ? 'wrapAnthropic' : 'wrapOpenAI'];
  expect(run.extra?.metadata).toMatchObject({ recorded_by });
});
