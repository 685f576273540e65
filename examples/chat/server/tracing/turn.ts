import { z } from 'zod';

const TEXT_MAX = 10_000;
/** Clocks of readers are off by minutes, and at times by hours. */
const CLOCKS_MS_MAX = 24 * 3_600_000;
const time = z.iso.datetime();

/** The turn of a user, as the page saw it; the agent's run is below it. */
export const TURN = z
  .object({
    id: z.uuidv7(),
    dotted_order: z.string().regex(/^\d{8}T\d{12}Z[\da-f-]{36}$/),
    run_id: z.uuidv7(),
    start_time: time,
    end_time: time,
    inputs: z.record(z.string(), z.unknown()),
    outputs: z.record(z.string(), z.unknown()),
    error: z.string().max(TEXT_MAX).optional(),
  })
  .refine(({ id, dotted_order }) => dotted_order.endsWith(id), {
    path: ['dotted_order'],
    error: 'Expected it to end with the id',
  });

type Turn = z.infer<typeof TURN>;

/**
 * Whether a turn is that of its run, by the trace that the run joined. A command can join any trace whose id is known: a turn that was not made when the run was is somebody else's, and
 * is not to be written over.
 */
export function isTurnOf({ id, run_id }: Turn, traceId: string | undefined): boolean {
  return id === traceId && Math.abs(madeMs(id) - madeMs(run_id)) <= CLOCKS_MS_MAX;
}

/** A turn as it is recorded. */
export function turnRun({ run_id: _, ...turn }: Turn): Readonly<Record<string, unknown>> {
  return { ...turn, trace_id: turn.id, name: 'page turn', run_type: 'chain' };
}

/** The time that a UUIDv7 begins with (RFC 9562, 5.7). */
function madeMs(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}
