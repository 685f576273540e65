/**
 * The hand-written baseline shows the limit of what a library can reach: it stringifies each payload once, builds one
 * buffer for 100 whole runs, and sends it with undici. It has no guards, limits, merging or retries. The context is a
 * variable if turns do not overlap.
 */
import { measure } from '../measure.mjs';
import { givenPlan } from '../plan.mjs';
import { isStream } from '../workloads/stream.mjs';
import { LimitBatches } from './limit-batches.mjs';
import { storageContext, variableContext } from './limit-context.mjs';
import { compactTime, isoTime, newId, nowUs } from './limit-stamps.mjs';

const plan = givenPlan();
const context = plan.isOverlapping ? storageContext() : variableContext();
const batches = new LimitBatches(process.env.RUNSPAN_ENDPOINT, plan);

await measure({ wrap: (fn, name, runType) => (isStream(fn) ? recordStream : record)(fn, name, runType), flush });

function record(fn, name, runType) {
  return async (input) => {
    const parent = context.current();
    const run = begin(name, runType, input, parent);
    try {
      const output = await context.enter(run, fn, input);
      run.outputs = JSON.stringify(output);
      return output;
    } catch (error) {
      run.error = JSON.stringify(textOf(error));
      throw error;
    } finally {
      context.leave(parent);
      end(run);
    }
  };
}

function recordStream(fn, name, runType) {
  return async function* (input) {
    const run = begin(name, runType, input, context.current());
    const chunks = [];
    for await (const chunk of fn(input)) {
      chunks.push(chunk);
      yield chunk;
    }
    run.outputs = JSON.stringify({ outputs: chunks });
    end(run);
  };
}

function begin(name, runType, input, parent) {
  const startUs = nowUs();
  const id = newId(startUs);
  const segment = compactTime(startUs) + id;
  const run = {
    id,
    traceId: parent === undefined ? id : parent.traceId,
    parentId: parent?.id,
    dottedOrder: parent === undefined ? segment : `${parent.dottedOrder}.${segment}`,
    name,
    runType,
    startTime: isoTime(startUs),
    endTime: undefined,
    inputs: JSON.stringify(input),
    outputs: undefined,
    error: undefined,
  };
  return run;
}

function end(run) {
  run.endTime = isoTime(nowUs());
  batches.add(run);
}

function textOf({ stack, cause }) {
  return cause === undefined ? stack : `${stack}\ncaused by ${textOf(cause)}`;
}

function flush() {
  return batches.flush();
}
