/** Every environment variable that is read; `docs/configuration.md` says what each does. */
export type EnvironmentName =
  | 'NODE_EXTRA_CA_CERTS'
  | 'NODE_TLS_REJECT_UNAUTHORIZED'
  | 'RUNSPAN_ENDPOINT'
  | 'RUNSPAN_API_KEY'
  | 'RUNSPAN_WORKSPACE_ID'
  | 'RUNSPAN_PROJECT'
  | 'RUNSPAN_TRACING'
  | 'RUNSPAN_SAMPLE_RATE'
  | 'RUNSPAN_HIDE_INPUTS'
  | 'RUNSPAN_HIDE_OUTPUTS'
  | 'RUNSPAN_ALLOW_INSECURE'
  | 'RUNSPAN_DURABILITY'
  | 'RUNSPAN_SPOOL_DIR'
  | 'RUNSPAN_LOG'
  | 'RUNSPAN_STORE'
  | 'RUNSPAN_RECEIVER_KEY'
  | 'RUNSPAN_CONTROL_PLANE_URL'
  | 'RUNSPAN_CONTROL_PLANE_KEY'
  | 'RUNSPAN_CONTROL_PLANE_SPELLING'
  | 'RUNSPAN_AGENT_URL'
  | 'RUNSPAN_AGENT_KEY'
  | 'LANGSMITH_ENDPOINT'
  | 'LANGSMITH_API_KEY'
  | 'LANGSMITH_WORKSPACE_ID'
  | 'LANGSMITH_PROJECT'
  | 'LANGSMITH_TRACING'
  | 'LANGSMITH_TRACING_V2'
  | 'LANGSMITH_TRACING_SAMPLING_RATE'
  | 'LANGSMITH_HIDE_INPUTS'
  | 'LANGSMITH_HIDE_OUTPUTS'
  | 'LANGCHAIN_ENDPOINT'
  | 'LANGCHAIN_TRACING'
  | 'LANGCHAIN_TRACING_V2'
  | 'HTTP_PROXY'
  | 'HTTPS_PROXY'
  | 'NO_PROXY'
  | 'http_proxy'
  | 'https_proxy'
  | 'no_proxy';

/** A variable without surrounding white space; undefined when it is unset or empty. The only reader of `process.env`. */
export function env(name: EnvironmentName): string | undefined {
  return process.env[name]?.trim() || undefined;
}

/** What a variable that somebody names on the command line holds, as it is. */
export function variable(name: string): string | undefined {
  return process.env[name];
}

/** The names of all variables that begin so, whether or not anybody reads them. */
export function variablesWith(prefix: string): string[] {
  return Object.keys(process.env).filter((name) => name.startsWith(prefix));
}

/** A copy of the environment for a child process, with these variables in it; `undefined` takes one out. */
export function environmentWith(variables: Readonly<Record<string, string | undefined>>): NodeJS.ProcessEnv {
  return { ...process.env, ...variables };
}
