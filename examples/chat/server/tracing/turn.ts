import { fromHeaders, type RemoteRun, runIdFrom } from 'runspan';
import { z } from 'zod';

/** By it a command says when the turn of a user began that it is part of. */
const TURN_HEADER = 'chat-turn';

const TEXT_MAX = 10_000;
const time = z.iso.datetime({ precision: 6 });

/** The turn of a user, as the page saw it. */
export const TURN = z.object({
  /** The run of the agent, which is below it. */
  run_id: z.string(),
  start_time: time,
  end_time: time,
  inputs: z.record(z.string(), z.unknown()),
  outputs: z.record(z.string(), z.unknown()),
  error: z.string().max(TEXT_MAX).optional(),
});

/** The run that a run of the agent is below: the turn of the page, or what the headers of a service tell of. */
export function callerOf(runId: string, headers: Headers): RemoteRun | undefined {
  const began = headers.get(TURN_HEADER);
  const turn = began === null ? undefined : fromHeaders({ 'runspan-trace': placeOf(runId, began) });
  return turn ?? fromHeaders(headers);
}

/** A turn as it is recorded. */
export function turnRun({ run_id, ...told }: z.infer<typeof TURN>): Readonly<Record<string, unknown>> {
  const id = turnIdOf(run_id);
  return {
    ...told,
    id,
    trace_id: id,
    dotted_order: placeOf(run_id, told.start_time),
    name: 'page turn',
    run_type: 'chain',
  };
}

/** It follows from that of the run, which is of this server's making: so the turn that is told of a run takes the place of no other run. */
function turnIdOf(runId: string): string {
  return runIdFrom(`${runId} turn`);
}

function placeOf(runId: string, began: string): string {
  return `${began.replace(/[-:.]/g, '')}${turnIdOf(runId)}`;
}
