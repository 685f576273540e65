import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ask } from './ask.ts';
import { modelFrom } from './model.ts';
import { startTelemetry } from './telemetry.ts';

const question = process.argv.slice(2).join(' ').trim();
if (question === '') {
  console.error('usage: node examples/ask-docs/build/main.js "question"');
  process.exitCode = 2;
} else {
  const telemetry = startTelemetry();
  try {
    const { text, by, sources, searched } = await ask(question, installedPackages(), modelFrom(process.env));
    console.log(text);
    console.log(`\nAnswered by ${by}, from ${sources.length} of ${searched} paragraphs:`);
    for (const [index, source] of sources.entries()) console.log(`[${index + 1}] ${source}`);
  } catch (error) {
    console.error(`ask-docs: ${(error as Error).message}`);
    process.exitCode = 1;
  } finally {
    await telemetry.shutdown();
  }
}

/** Returns the nearest `node_modules` above this file, wherever the program is started. */
function installedPackages(): string {
  for (let folder = import.meta.dirname; folder !== dirname(folder); folder = dirname(folder)) {
    const packages = join(folder, 'node_modules');
    if (existsSync(packages)) return packages;
  }
  throw new Error('no node_modules above this file; run npm ci first');
}
