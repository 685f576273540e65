/**
 * Returns a built-in Node module. The first call for a module loads the module. An `import` would load the module at
 * startup and read all exports, which takes milliseconds.
 */
export const nodeModule: typeof process.getBuiltinModule = process.getBuiltinModule;

export const types: typeof import('node:util').types = nodeModule('node:util').types;
