import { basename } from 'node:path';
import { visible } from '../../base/text.ts';
import { isAtLeast } from '../../base/version.ts';
import { documentationUrl, type Ending } from '../command-line.ts';
import { samplingOff } from '../doctor/settings.ts';
import { isAgent } from './agents.ts';
import { nodeVersionFor } from './hook-variables.ts';

/** The first version of Node with hooks for ES modules. */
const HOOKS_MIN = [22, 15] as const;

const BUN_OR_DENO = /^(?:bunx?|deno)(?:\.exe)?$/i;
const OTHER_LANGUAGE = /^(?:python[\d.]*|py|uv|poetry|ruby|php|java|go|dotnet|cargo)(?:\.exe)?$/i;

/** Returns a line about a command whose runs did not arrive: the reason if it is known, otherwise what is recorded. */
export async function nothingArrived(program: string, ending: Ending): Promise<string> {
  if (typeof ending === 'number' && ending > 0)
    return `no run of the command arrived before it ended with code ${ending}`;
  const [reason, page] = await reasonFor(program);
  return `no run of the command arrived: ${reason}; see ${documentationUrl(page)}`;
}

async function reasonFor(program: string): Promise<readonly [reason: string, page: string]> {
  const sampling = samplingOff();
  if (sampling !== undefined) return [`${sampling} is 0, so no run is recorded`, 'docs/configuration.md#settings'];
  const name = visible(basename(program));
  if (isAgent(program)) return [`${name} sent no telemetry`, 'docs/dev.md#trace-a-coding-agent'];
  if (BUN_OR_DENO.test(name)) return [`${name} does not read NODE_OPTIONS`, 'docs/register.md#other-runtimes'];
  const other = `${name} is not Node, so the program needs langsmith or an OpenTelemetry SDK`;
  if (OTHER_LANGUAGE.test(name)) return [other, 'docs/opentelemetry.md#services-in-other-languages'];
  const clients = 'no call that runspan reads used fetch, and calls with node:http or axios are not recorded';
  const version = await nodeVersionFor(program);
  if (version === undefined || isAtLeast(version, HOOKS_MIN)) return [clients, 'docs/fetch.md#limits'];
  return [`${clients}; Node ${version} records no steps of packages`, 'docs/register.md#requirements'];
}
