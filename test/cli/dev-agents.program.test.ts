import { chmodSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { expect, it } from 'vitest';
import { runRunspan } from '../support/program.ts';
import { testFolder } from '../support/test-folder.ts';

/** A command that prints its variables and arguments, and sends a span to the endpoint for traces, if there is one. */
const AGENT = `#!${process.execPath}
  const { env } = process;
  const endpoint = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT;
  const attributes = [{ key: 'gen_ai.operation.name', value: { stringValue: 'invoke_agent' } }];
  const span = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), name: 'turn', attributes };
  const times = { startTimeUnixNano: '1764000000000000000', endTimeUnixNano: '1764000001000000000' };
  const body = { resourceSpans: [{ scopeSpans: [{ spans: [{ ...span, ...times }] }] }] };
  const [[name, value]] = env.OTEL_EXPORTER_OTLP_TRACES_HEADERS.split(',').map((header) => header.split('='));
  const headers = { 'content-type': 'application/json', [name]: value };
  const { status } = await fetch(endpoint, { method: 'POST', headers, body: JSON.stringify(body) });
  console.log(JSON.stringify({ status, env, args: process.argv.slice(2) }));
`;

interface Seen {
  readonly status: number;
  readonly env: Readonly<Record<string, string>>;
  readonly args: readonly string[];
}

/** Runs a command named like a coding agent below `runspan dev`. Returns what it printed, and the output after it. */
async function runAgent(name: string, options: readonly string[], variables: Readonly<Record<string, string>> = {}) {
  // Without an extension, Node runs a file as an ES module only below such a package.
  const folder = testFolder({ 'package.json': '{ "type": "module" }', [name]: AGENT });
  const path = join(folder, name);
  chmodSync(path, 0o755);
  const { code, stdout, stderr } = await runRunspan(
    ['dev', '--port', '0', '--memory', ...options, '--', name, '-p', 'hello'],
    { PATH: `${folder}${delimiter}${process.env.PATH}`, ...variables },
  );
  const [listens = '', printed = '', ...drawn] = stdout.split('\n');
  const url = listens.replace('runspan listens on ', '');
  const seen: Seen = JSON.parse(printed);
  return { code, stderr, url, drawn: drawn.join('\n'), ...seen };
}

/** The variables of Claude Code that send content. */
const CONTENT = [
  'OTEL_LOG_USER_PROMPTS',
  'OTEL_LOG_ASSISTANT_RESPONSES',
  'OTEL_LOG_TOOL_DETAILS',
  'OTEL_LOG_TOOL_CONTENT',
];

it('Claude Code sends its spans without content to the receiver, and its trace is drawn when it has ended', async () => {
  const { code, stderr, url, drawn, status, env, args } = await runAgent('claude', []);
  expect([code, stderr, status]).toEqual([0, '', 200]);
  expect(env).toMatchObject({
    CLAUDE_CODE_ENABLE_TELEMETRY: '1',
    CLAUDE_CODE_ENHANCED_TELEMETRY_BETA: '1',
    OTEL_TRACES_EXPORTER: 'otlp',
    OTEL_LOGS_EXPORTER: 'none',
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${url}/v1/traces`,
    OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/protobuf',
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: expect.stringMatching(/^x-runspan-program=/),
  });
  for (const name of [...CONTENT, 'OTEL_LOG_RAW_API_BODIES', 'ENABLE_BETA_TRACING_DETAILED'])
    expect(env).toHaveProperty(name, '0');
  // The agent is no program of the user, so that its model calls are not recorded a second time.
  expect(env).not.toHaveProperty('NODE_OPTIONS');
  expect(args).toEqual(['--settings', expect.any(String), '-p', 'hello']);
  // The settings take precedence over those in the user's files.
  const { env: settings } = JSON.parse(args[1] ?? '');
  expect(env).toMatchObject(settings);
  expect(settings).toMatchObject({ OTEL_LOG_USER_PROMPTS: '0', OTEL_LOGS_EXPORTER: 'none' });
  expect(drawn).toContain('turn · chain · 1 s\n');
});

it('with --content, Claude Code also sends prompts, answers, tool inputs and tool outputs', async () => {
  const { url, env } = await runAgent('claude', ['--content'], { OTEL_LOG_USER_PROMPTS: '0' });
  expect(env).toMatchObject({ OTEL_LOGS_EXPORTER: 'otlp', OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: `${url}/v1/logs` });
  for (const name of CONTENT) expect(env).toHaveProperty(name, '1');
});

it('no variable of the user sends content of Claude Code, and one line names the endpoint that is not used', async () => {
  const own = { OTEL_LOGS_EXPORTER: 'otlp', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' };
  const content = Object.fromEntries(CONTENT.map((name) => [name, '1']));
  const { stderr, url, env } = await runAgent('claude', [], { ...own, ...content, ENABLE_BETA_TRACING_DETAILED: '1' });
  expect(env).toMatchObject({ OTEL_LOGS_EXPORTER: 'none', OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${url}/v1/traces` });
  for (const name of [...CONTENT, 'ENABLE_BETA_TRACING_DETAILED']) expect(env).toHaveProperty(name, '0');
  expect(stderr).toBe('runspan: claude sends its telemetry to the receiver, not to OTEL_EXPORTER_OTLP_ENDPOINT\n');
});

it('Codex gets the settings as arguments, and the API key only as a variable', async () => {
  const key = 'key-of-the-receiver';
  const { url, env, args } = await runAgent('codex', [], { RUNSPAN_RECEIVER_KEY: key });
  const exporter = (signal: string) => `{ otlp-http = { endpoint = "${url}/v1/${signal}", protocol = "binary" } }`;
  expect(args).toEqual([
    ...['-c', `otel.trace_exporter=${exporter('traces')}`],
    ...['-c', 'otel.exporter="none"'],
    ...['-c', 'otel.log_user_prompt=false'],
    ...['-c', 'otel.log_agent_responses=false'],
    ...['-p', 'hello'],
  ]);
  expect(env.OTEL_EXPORTER_OTLP_TRACES_HEADERS).toMatch(`x-api-key=${key},x-runspan-program=`);
  const withContent = await runAgent('codex', ['--content']);
  expect(withContent.args).toEqual(
    expect.arrayContaining([
      `otel.exporter={ otlp-http = { endpoint = "${withContent.url}/v1/logs", protocol = "binary" } }`,
      'otel.log_user_prompt=true',
      'otel.log_agent_responses=true',
    ]),
  );
});
