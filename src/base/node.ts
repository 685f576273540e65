/** An `import` of a Node module would load the module and read all exports at startup, which takes milliseconds. */
export const nodeModule: typeof process.getBuiltinModule = process.getBuiltinModule;

export const types: typeof import('node:util').types = nodeModule('node:util').types;
