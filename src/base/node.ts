/**
 * Loads a built-in Node module when the module is first used. An `import` would load the module and read all its
 * exports at startup, which takes milliseconds.
 */
export const nodeModule: typeof process.getBuiltinModule = process.getBuiltinModule;

/** The functions of `util.types`. */
export const types: typeof import('node:util').types = nodeModule('node:util').types;
