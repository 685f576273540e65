import { type RunRecord, traceable } from 'runspan';
import * as ai from 'runspan/ai';
import * as anthropic from 'runspan/anthropic';
import * as clients from 'runspan/clients';
import * as langchain from 'runspan/langchain';
import * as mcp from 'runspan/mcp';
import * as openai from 'runspan/openai';
import * as otel from 'runspan/otel';
import * as receiver from 'runspan/receiver';
import { recordRuns } from 'runspan/testing';

const entries = { ai, anthropic, clients, langchain, mcp, openai, otel, receiver };

const double = traceable((value: number) => value * 2, { name: 'double', runType: 'tool' });
const recorder = recordRuns();
const doubled: number = double(21);
recorder.stop();
const run: RunRecord = recorder.run('double');
// @ts-expect-error The types of the package apply.
const wrong: string = double(21);

console.log(
  JSON.stringify({
    doubled,
    name: run.name,
    empty: Object.values(entries).filter((entry) => Object.keys(entry).length === 0),
  }),
);

export { wrong };
