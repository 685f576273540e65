import { HttpError } from './http-error.ts';

/** Paths of LangSmith's API that the receiver does not serve, and where to look instead. */
const UNSERVED: readonly (readonly [request: RegExp, detail: string])[] = [
  [
    /^\w+ \/(?:datasets|examples|(?:v1\/)?platform\/(?:datasets|evaluators))(?:\/|$)/,
    'Datasets, examples and experiments are not served: keep them in LangSmith, or in the tests of your program',
  ],
  [
    /^\w+ \/(?:(?:v1\/)?platform\/)?annotation-queues(?:\/|$)/,
    'Annotation queues are not served: store the judgement of a run with POST /feedback',
  ],
  [/^\w+ \/(?:repos|commits|prompts|likes)(?:\/|$)/, 'Prompts are not served: keep them in LangSmith or in your code'],
  [
    /^\w+ \/(?:public\/|runs\/[^/]+\/share$)/,
    'Shared links are not served: save a trace as a file with GET /query/traces/{id}/export?format=html',
  ],
  [
    /^POST \/runs\/(?:group|stats)(?:\/|$)/,
    'Groups and statistics of runs are not served here: use GET /query/threads and GET /query/statistics',
  ],
  [
    /^(?:POST|PATCH|PUT|DELETE) \/sessions(?:\/|$)/,
    'A project is neither created nor changed: it exists while it has runs, and DELETE /query/projects/{name} deletes it',
  ],
  [/^\w+ \/feedback-configs(?:\/|$)/, 'Feedback is not configured: POST /feedback accepts each key, score and value'],
  [/^\w+ \/(?:settings|workspaces|orgs|api-key)(?:\/|$)/, 'Workspaces are not served: manage keys with `runspan keys`'],
  [
    /^\w+ \/api\/v2\/(?:runs|threads|traces|datasets|public|sandboxes)\//,
    'Version 2 of the API is not served: use the methods of version 1, for example listRuns and readRun',
  ],
];

/** Returns the error for a request to LangSmith's API that the receiver does not serve. */
export function unservedError(method: string | undefined, path: string): HttpError | undefined {
  const detail = UNSERVED.find(([request]) => request.test(`${method} ${path}`))?.[1];
  return detail === undefined ? undefined : new HttpError(501, detail);
}
