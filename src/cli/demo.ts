import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Command } from '@commander-js/extra-typings';
import { visible, visibleJson } from '../base/text.ts';
import { nodeModule } from '../platform/node.ts';
import { type CommandContext, type Ending, PACKAGE_FOLDER, untilStopped } from './command-line.ts';

const HELP = `
Exit code:
  0 if the platform and the clients do what the interface says; 1 at a difference; 2 for invalid
  arguments`;

export function define(command: Command, context: CommandContext): void {
  command
    .description(
      'Starts a platform in this process, works with it through the clients and the tracer of this package, and sends it the mistakes that the interface forbids. Needs no key and no network.',
    )
    .option('--json', 'print the results as one JSON object')
    .option('--keep', 'serve the page with the traces until Ctrl-C')
    .addHelpText('after', HELP)
    .action(async (options) => context.endAs(await run(options, context)));
}

interface DemoOptions {
  readonly json?: true | undefined;
  readonly keep?: true | undefined;
}

/** Global key of the function with which a program that starts the demo replaces its tracer. */
const TRACER = Symbol.for('runspan.demo.tracer');

async function run({ json, keep }: DemoOptions, { stdout, stderr }: CommandContext): Promise<Ending> {
  await provideApi();
  const { createTracer } = await import('examples:minimal-tracer');
  const { createScriptedChat } = await import('examples:scripted-chat');
  const { demo } = await import('examples:demo');
  const isRight = await demo({
    createTracer: Reflect.get(globalThis, TRACER) ?? createTracer,
    createScriptedChat,
    packageUrl: pathToFileURL(join(PACKAGE_FOLDER, 'dist', 'index.js')).href,
    isJson: json === true,
    print: (text: string) => stdout.write(`${json ? visibleJson(text) : visible(text)}\n`),
    warn: (text: string) => stderr.write(`demo: ${visible(text)}\n`),
    ...(keep && { untilStopped }),
  });
  return isRight ? 0 : 1;
}

/** Loads this package's copy of OpenTelemetry's API if the API, which is an optional peer, is not installed. */
async function provideApi(): Promise<void> {
  try {
    import.meta.resolve('@opentelemetry/api');
  } catch {
    const { hookUrl, resolve } = await import('examples:api-hook');
    // `registerHooks` is available since Node 22.15.
    const { register, registerHooks } = nodeModule('node:module') as typeof import('node:module') & {
      readonly registerHooks?: (hooks: { readonly resolve: typeof resolve }) => unknown;
    };
    if (registerHooks === undefined) register(hookUrl);
    else registerHooks({ resolve });
  }
}
