import { endpointProblem, isHeaderKey, isObject } from './checker.ts';
import { langsmithEnv } from './environment.ts';
import { complain } from './variables.ts';

/** One of the services to which all runs are sent. */
export interface RunsEndpoint {
  readonly apiUrl: string;
  /** An empty key is not sent. */
  readonly apiKey: string;
  /** @default the project of the run */
  readonly projectName: string | undefined;
  /** Whether the runs keep their ids. */
  readonly primary: boolean | undefined;
}

/**
 * Returns the services in `LANGSMITH_RUNS_ENDPOINTS`: a JSON array of objects, or a JSON object of URLs and keys. Reads
 * the fields that LangSmith's package reads.
 */
export function runsEndpoints(): readonly RunsEndpoint[] {
  const text = langsmithEnv('RUNS_ENDPOINTS');
  if (text === undefined) return [];
  const entries = entriesIn(text);
  const endpoints = entries.flatMap((entry) => endpointOf(entry) ?? []);
  if (endpoints.length < entries.length) {
    complain(
      'expected LANGSMITH_RUNS_ENDPOINTS to be a JSON array of objects with `api_url` and `api_key`, or a JSON object of URLs and keys; what is invalid is ignored',
    );
  }
  return endpoints;
}

function entriesIn(text: string): readonly unknown[] {
  try {
    const given: unknown = JSON.parse(text);
    if (Array.isArray(given)) return given;
    if (isObject(given)) return Object.entries(given).map(([api_url, api_key]) => ({ api_url, api_key }));
  } catch {
    // The text may contain keys, so no log line quotes it.
  }
  return [undefined];
}

function endpointOf(entry: unknown): RunsEndpoint | undefined {
  const { api_url, api_key, project_name, primary } = isObject(entry) ? entry : {};
  if (typeof api_url !== 'string' || typeof api_key !== 'string') return undefined;
  const [apiUrl, apiKey] = [api_url.trim(), api_key.trim()];
  if (endpointProblem(apiUrl) !== undefined || !(apiKey === '' || isHeaderKey(apiKey))) return undefined;
  const projectName = project_name ?? undefined;
  const isUsable =
    ['string', 'undefined'].includes(typeof projectName) && ['boolean', 'undefined'].includes(typeof primary);
  return isUsable ? ({ apiUrl, apiKey, projectName, primary } as RunsEndpoint) : undefined;
}
