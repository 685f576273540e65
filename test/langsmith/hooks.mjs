// Module hooks: strip the types of the programs, and import `runspan/langsmith` for each entry of `langsmith` if the
// variable TESTED_PACKAGE says so.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { transformSync } from 'esbuild';

const FOLDER = new URL('./', import.meta.url).href;
const PROGRAMS = new URL('./programs/', import.meta.url).href;
const isChanged = process.env.TESTED_PACKAGE === 'runspan/langsmith';

export function resolve(specifier, context, next) {
  const isOfProgram = context.parentURL?.startsWith(PROGRAMS) && /^langsmith(\/|$)/.test(specifier);
  return next(isOfProgram && isChanged ? 'runspan/langsmith' : specifier, context);
}

export function load(url, context, next) {
  if (!url.startsWith(FOLDER) || !url.endsWith('.ts')) return next(url, context);
  const { code } = transformSync(readFileSync(fileURLToPath(url), 'utf8'), { loader: 'ts' });
  return { format: 'module', source: code, shortCircuit: true };
}
