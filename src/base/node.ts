/**
 * Loads a module of Node at its first use. An `import` would load it together with this package and read each of its exports,
 * which takes milliseconds of the start of every program.
 */
export const nodeModule: typeof process.getBuiltinModule = process.getBuiltinModule;

/** `util.types`. */
export const types: typeof import('node:util').types = nodeModule('node:util').types;
