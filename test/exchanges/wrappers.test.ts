// Calls of the SDKs whose clients are wrapped.
import { test } from 'vitest';
import { record } from '../instrument/recorder.ts';
import { onlyRun } from '../integrations/local-openai.ts';
import { expectRun, serve } from './run.ts';
import { callSdk, hasSdk } from './sdks.ts';
import { rows } from './table.ts';

test.each(rows.filter(({ exchange }) => hasSdk(exchange)))('$title is recorded', async ({ exchange, isStreamed }) => {
  await serve(exchange, isStreamed);
  const recorder = record();
  await callSdk(exchange, isStreamed, true);
  expectRun(onlyRun(recorder.runs), exchange, isStreamed);
});
