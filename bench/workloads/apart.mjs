/**
 * The turn of an agent whose parts take longer than the linger, so that every run's start has left before its end is known, and
 * the two travel apart.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { agentOf } from './agent.mjs';

/** A batch leaves 250 ms after its first run, at the latest. */
const PART_MS = 400;

export const apart = agentOf(() => sleep(PART_MS));
