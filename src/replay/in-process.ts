import { AsyncLocalStorage } from 'node:async_hooks';
import { RunspanError } from '../base/errors.ts';
import { answerFetch } from '../integrations/fetch/record-fetch.ts';
import { recordRuns } from '../testing/record-runs.ts';
import { Replay, type ReplayEvent, type ReplayJob } from './replay.ts';
import type { Result } from './replayed.ts';

let isReplaying = false;

/** Runs a program in this process, until it ends or makes a call after the last recorded one. */
export async function inThisProcess(job: ReplayJob, run: () => unknown): Promise<Result> {
  if (isReplaying) throw new RunspanError('RUNSPAN_INVALID_OPTION', 'Expected one replay with `run` at a time');
  isReplaying = true;
  const events: ReplayEvent[] = [];
  const recorder = recordRuns();
  const inReplay = new AsyncLocalStorage<true>();
  let end = (): void => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const replay = new Replay(job, (event) => {
    events.push(event);
    if ('ended' in event) end();
  });
  const stop = answerFetch((input, init, send) => (inReplay.getStore() ? replay.answer(input, init, send) : send()));
  let check: Result['check'];
  try {
    await Promise.race([inReplay.run(true, run), ended]);
  } catch (error) {
    check = () => {
      throw error;
    };
  }
  // A program that goes on after the recorded trace must not send its next calls.
  if (!events.some((event) => 'ended' in event)) stop();
  recorder.stop();
  isReplaying = false;
  if (events.length === 0 && job.calls.length > 0)
    events.push({ mismatch: 'no model call was made with the `fetch` of the replay: import the program within `run`' });
  return { runs: recorder.runs, events, ...(check && { check }) };
}
