/** The modules of `examples/` that the build adds to the package, for `runspan demo`. */
declare module 'examples:*' {
  export const demo: (options: object) => Promise<boolean>;
  export const createTracer: unknown;
  export const createScriptedChat: unknown;
  export const hookUrl: string;
  export const resolve: (name: string, context: object, next: (name: string, context: object) => object) => object;
}
