// The built-in Node modules that the clients need. In builds for browsers, `node.browser.ts` replaces this file.

/**
 * Loads a built-in module on demand. An `import` would load the module and read all its exports at startup, which takes
 * milliseconds.
 */
export const nodeModule: typeof process.getBuiltinModule = process.getBuiltinModule;

export const types: typeof import('node:util').types = nodeModule('node:util').types;

export const AsyncResource: typeof import('node:async_hooks').AsyncResource =
  nodeModule('node:async_hooks').AsyncResource;

export function environment(): NodeJS.ProcessEnv {
  return process.env;
}

/** Turns off the warning that Node prints when a signal has more than ten listeners. */
export function allowListeners(signal: AbortSignal): void {
  nodeModule('node:events').setMaxListeners(0, signal);
}
