import { AsyncLocalStorage } from 'node:async_hooks';
import { RunspanError } from '../base/errors.ts';
import { answerFetch } from '../integrations/fetch/record-fetch.ts';
import { recordRuns } from '../testing/record-runs.ts';
import { FixtureReplay, type ReplayEvent, type ReplayJob } from './fixture-replay.ts';
import { type Result, wasStopped } from './replayed.ts';

/** The replay of the program that makes a call. A stopped program may still run during the next replay. */
const replays = new AsyncLocalStorage<FixtureReplay>();
let isReplaying = false;

/** Runs a program in this process, until it ends or makes a call after the last recorded one. */
export async function inThisProcess(job: ReplayJob, run: () => unknown): Promise<Result> {
  if (isReplaying) throw new RunspanError('RUNSPAN_INVALID_OPTION', 'Expected one replay with `run` at a time');
  isReplaying = true;
  const events: ReplayEvent[] = [];
  const recorder = recordRuns();
  let stopProgram = (): void => {};
  const stopped = new Promise<void>((resolve) => {
    stopProgram = resolve;
  });
  const replay = new FixtureReplay(job, (event) => {
    events.push(event);
    if ('stopped' in event) stopProgram();
  });
  const release = answerFetch((input, init, send) => replays.getStore()?.answer(input, init, send) ?? send());
  let check: Result['check'];
  try {
    await Promise.race([replays.run(replay, run), stopped]);
  } catch (error) {
    check = () => {
      throw error;
    };
  }
  // A program that goes on after the recorded trace must not send its next calls.
  release(wasStopped(events));
  recorder.stop();
  isReplaying = false;
  if (events.length === 0 && job.calls.length > 0)
    events.push({ mismatch: 'no model call was made with the `fetch` of the replay: import the program within `run`' });
  return { runs: recorder.runs, events, ...(check && { check }) };
}
