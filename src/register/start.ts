import { diagnostics, LEVELS } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import { parseFlag } from '../config/checker.ts';
import { env } from '../config/environment.ts';
import type { Instrumentation } from './module-hooks.ts';

const STARTED = Symbol.for('runspan.register.started');

/**
 * Starts the instrumentations that the environment selects and returns their names. Does nothing if tracing is off.
 * Also does nothing if another copy of runspan has already started, for example in `runspan dev`.
 */
export function startOnce(instrumentations: readonly Instrumentation[]): string[] {
  const holder = globalThis as { [STARTED]?: true };
  if (holder[STARTED] || parseFlag(env('RUNSPAN_TRACING')) === false) return [];
  holder[STARTED] = true;
  // The log level is set here, because `RUNSPAN_LOG` would otherwise be read only at the first run.
  const level = LEVELS.find((known) => known === env('RUNSPAN_LOG'));
  if (level !== undefined && !diagnostics.isLogSet) diagnostics.setLog(level);
  const chosen = selected(instrumentations, env('RUNSPAN_INSTRUMENTATIONS'));
  for (const { name, start } of chosen) guard(`runspan/register ${name}`, start);
  return chosen.map(({ name }) => name);
}

/** Selects instrumentations by name. If no name is given, all are selected. Names after `-` are excluded. */
function selected(all: readonly Instrumentation[], setting: string | undefined): readonly Instrumentation[] {
  const names = setting?.split(',').flatMap((name) => name.trim() || []) ?? [];
  const known = all.map(({ name }) => name);
  const unknown = names.filter((name) => !known.includes(name.replace(/^-/, '')));
  if (unknown.length > 0) {
    diagnostics.warn(
      `RUNSPAN_INSTRUMENTATIONS: unknown names are ignored: ${unknown.join(', ')}. Known names: ${known.join(', ')}.`,
    );
  }
  const isLimited = names.some((name) => !name.startsWith('-'));
  return all.filter(({ name }) => (!isLimited || names.includes(name)) && !names.includes(`-${name}`));
}
