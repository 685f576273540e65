import type { Command } from '@commander-js/extra-typings';
import { diagnostics } from '../../base/diagnostics.ts';
import { visibleJson } from '../../base/text.ts';
import { version } from '../../base/version.ts';
import { env } from '../../config/environment.ts';
import { SETTINGS } from '../../config/settings.ts';
import { withoutSecrets } from '../../delivery/wire/reason.ts';
import { createClient } from '../../http/create-client.ts';
import { environment } from '../../platform/node.ts';
import { DELAY_MAX_MS } from '../../platform/timers.ts';
import type { CommandContext, Output } from '../command-line.ts';
import { type Finding, findingLine, okFinding } from './finding.ts';
import { loadVariables, projectFindings } from './project.ts';
import { connectionFindings, testRunFinding } from './service.ts';
import { settingFindings } from './settings.ts';

const HELP = `
Exit code:
  0 if no check fails, 1 if a check fails, 2 for invalid arguments`;

export function define(command: Command, { stdout, endAs }: CommandContext): void {
  command
    .description(
      'Checks the program in this folder: Node, the packages, the imports from langsmith, the variables in the environment, .env and .env.local, and the connection to the service. Then sends one run named "runspan doctor". Prints no secrets.',
    )
    .option('--json', 'print the findings as one JSON object')
    .addHelpText('after', HELP)
    .action(async ({ json }) => {
      if (!(await doctor(json === true, stdout))) endAs(1);
    });
}

async function doctor(isJson: boolean, stdout: Output): Promise<boolean> {
  const findings: Finding[] = [];
  const files = loadVariables(process.cwd());
  // An unused key may also be part of another value.
  diagnostics.conceal(
    [...SETTINGS.apiKey.variables, ...SETTINGS.workspaceId.variables].flatMap((name) => env(name) ?? []),
  );
  // The HTTP client's sockets do not keep the process alive, so a timer does.
  const keepAlive = setInterval(() => {}, DELAY_MAX_MS);
  try {
    for await (const found of allFindings(files)) {
      const finding = { ...found, message: withoutSecrets(found.message) ?? '[Redacted]' };
      findings.push(finding);
      if (!isJson) stdout.write(`${findingLine(finding)}\n`);
    }
  } finally {
    clearInterval(keepAlive);
    for (const name of files.keys()) delete environment()[name];
  }
  const isHealthy = findings.every(({ level }) => level !== 'fail');
  if (isJson) stdout.write(`${visibleJson(JSON.stringify({ version, ok: isHealthy, findings }, undefined, 2))}\n`);
  return isHealthy;
}

/** Request timeout in milliseconds. The user of the command waits for the response. */
const RESPONSE_MAX_MS = 8_000;

async function* allFindings(files: ReadonlyMap<string, string>): AsyncGenerator<Finding> {
  yield okFinding('node', `${process.version}, with runspan ${version}`);
  yield* projectFindings(process.cwd());
  const { findings, settings } = settingFindings(files);
  yield* findings;
  if (settings === undefined) return;
  const requestTimeoutMs = Math.min(settings.limits.requestTimeoutMs, RESPONSE_MAX_MS);
  const client = createClient({ ...settings, requestTimeoutMs });
  try {
    for await (const finding of connectionFindings(settings, client)) {
      yield finding;
      if (finding.level === 'fail') return;
    }
    yield await testRunFinding(settings);
  } finally {
    await client.destroy();
  }
}
