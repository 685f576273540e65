import * as nodeModule from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Command } from '@commander-js/extra-typings';
import { messageOf, visible, visibleJson } from '../base/text.ts';
import type { ModuleLoader } from '../register/module-hooks.ts';
import { type CommandContext, CommandFailure, type Ending, untilStopped } from './command-line.ts';

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
    .option('--tracer <file>', 'module that exports createTracer, instead of the tracer of the demo')
    .addHelpText('after', HELP)
    .action(async (options) => context.endAs(await demo(options, context)));
}

interface DemoOptions {
  readonly json?: true | undefined;
  readonly keep?: true | undefined;
  readonly tracer?: string | undefined;
}

/** The build compiles the demo, which is an example, to this folder. */
const CHUNKS = new URL('../../dist/chunks/', import.meta.url).href;

async function demo({ json, keep, tracer }: DemoOptions, { stdout, stderr }: CommandContext): Promise<Ending> {
  provideApi();
  const load = (url: string) => import(/* @vite-ignore */ url);
  const file = tracer === undefined ? `${CHUNKS}minimal-tracer.js` : pathToFileURL(resolve(tracer)).href;
  const { createTracer } = await load(file).catch((error) => {
    throw new CommandFailure(`--tracer: ${messageOf(error)}`);
  });
  const { createScriptedChat } = await load(`${CHUNKS}scripted-chat.js`);
  const { demo: run } = await load(`${CHUNKS}whole-interface.js`);
  const isRight: boolean = await run({
    createTracer,
    createScriptedChat,
    packageUrl: new URL('../index.js', CHUNKS).href,
    isJson: json === true,
    print: (text: string) => stdout.write(`${json ? visibleJson(text) : visible(text)}\n`),
    warn: (text: string) => stderr.write(`demo: ${visible(text)}\n`),
    ...(keep && { untilStopped }),
  });
  return isRight ? 0 : 1;
}

const API = '@opentelemetry/api';

/** Loads this package's copy of OpenTelemetry's API if the API, which is an optional peer, is not installed. */
function provideApi(): void {
  try {
    import.meta.resolve(API);
  } catch {
    const found = { url: `${CHUNKS}opentelemetry-api.js`, shortCircuit: true };
    const { registerHooks } = nodeModule as unknown as ModuleLoader;
    const hook = `(name, context, next) => name === '${API}' ? ${JSON.stringify(found)} : next(name, context)`;
    if (registerHooks === undefined)
      nodeModule.register(`data:text/javascript,export const resolve = ${encodeURIComponent(hook)}`);
    else registerHooks({ resolve: (name, context, next) => (name === API ? found : next(name, context)) });
  }
}
