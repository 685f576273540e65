import { basename } from 'node:path';

/** What `runspan dev` adds to the command of a coding agent, so that the agent sends its telemetry to the receiver. */
interface AgentSettings {
  readonly variables: Readonly<Record<string, string>>;
  /** Arguments before those of the user. Other users of the machine can read them, so they contain no key. */
  readonly args: readonly string[];
}

/** The variables with the endpoints, and whether prompts, answers, tool arguments and tool outputs are sent. */
type SettingsFor = (endpoints: Readonly<Record<string, string>>, hasContent: boolean) => AgentSettings;

/** Written for Claude Code 2.1.332 and Codex 0.171.0. */
const AGENTS: ReadonlyMap<string, SettingsFor> = new Map([
  ['claude', claude],
  ['codex', codex],
]);

/** Returns the settings for a coding agent. Returns undefined for other commands. `headers` are for OTLP requests. */
export function agentSettings(
  program: string,
  url: string,
  headers: string,
  hasContent: boolean,
): AgentSettings | undefined {
  const settings = AGENTS.get(agentName(program));
  if (settings === undefined) return undefined;
  // The variables for one signal take precedence over those for all signals, which the user may have set.
  const endpoints = Object.fromEntries(
    ['TRACES', 'LOGS'].flatMap((signal) => [
      [`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`, `${url}/v1/${signal.toLowerCase()}`],
      [`OTEL_EXPORTER_OTLP_${signal}_PROTOCOL`, 'http/protobuf'],
    ]),
  );
  const { variables, args } = settings(endpoints, hasContent);
  const ofHeaders = { OTEL_EXPORTER_OTLP_TRACES_HEADERS: headers, OTEL_EXPORTER_OTLP_LOGS_HEADERS: headers };
  return { variables: { ...endpoints, ...variables, ...ofHeaders }, args };
}

export function isAgent(program: string): boolean {
  return AGENTS.has(agentName(program));
}

function agentName(program: string): string {
  return basename(program).replace(/\.exe$/i, '');
}

/** The variables are also passed as settings, because those in the user's settings files take precedence over variables. */
function claude(endpoints: Readonly<Record<string, string>>, hasContent: boolean): AgentSettings {
  const content = hasContent ? '1' : '0';
  const variables = {
    CLAUDE_CODE_ENABLE_TELEMETRY: '1',
    CLAUDE_CODE_ENHANCED_TELEMETRY_BETA: '1',
    OTEL_TRACES_EXPORTER: 'otlp',
    // Only log records contain the answers.
    OTEL_LOGS_EXPORTER: hasContent ? 'otlp' : 'none',
    OTEL_LOG_USER_PROMPTS: content,
    OTEL_LOG_ASSISTANT_RESPONSES: content,
    OTEL_LOG_TOOL_DETAILS: content,
    OTEL_LOG_TOOL_CONTENT: content,
    // If the user has turned these on, they send content too.
    ...(!hasContent && { OTEL_LOG_RAW_API_BODIES: '0', ENABLE_BETA_TRACING_DETAILED: '0' }),
  };
  return { variables, args: ['--settings', JSON.stringify({ env: { ...endpoints, ...variables } })] };
}

/** Codex reads no variables for the endpoints. All its log records of tools contain the arguments and the output. */
function codex(endpoints: Readonly<Record<string, string>>, hasContent: boolean): AgentSettings {
  const exporter = (signal: string): string => {
    const endpoint = JSON.stringify(endpoints[`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`]);
    return `{ otlp-http = { endpoint = ${endpoint}, protocol = "binary" } }`;
  };
  const config = {
    trace_exporter: exporter('TRACES'),
    exporter: hasContent ? exporter('LOGS') : '"none"',
    log_user_prompt: hasContent,
    log_agent_responses: hasContent,
  };
  return { variables: {}, args: Object.entries(config).flatMap(([key, value]) => ['-c', `otel.${key}=${value}`]) };
}
