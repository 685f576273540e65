// All access to built-in modules that the clients need. `node.browser.ts` replaces this file in a build for browsers.

/** An `import` of a Node module would load the module and read all exports at startup, which takes milliseconds. */
export const nodeModule: typeof process.getBuiltinModule = process.getBuiltinModule;

export const types: typeof import('node:util').types = nodeModule('node:util').types;

export const AsyncResource: typeof import('node:async_hooks').AsyncResource =
  nodeModule('node:async_hooks').AsyncResource;

export function environment(): NodeJS.ProcessEnv {
  return process.env;
}

/** Turns off Node's warning about the eleventh listener of a signal. */
export function allowListeners(signal: AbortSignal): void {
  nodeModule('node:events').setMaxListeners(0, signal);
}
