import { createServer, type Plugin, type ViteDevServer } from 'vite';
import { alias, root } from '../support/folders.ts';

const HOOK = '__runspanAwaited';

/** Freshly loaded modules whose awaited promises pass through `seams`. */
export interface Seams {
  readonly load: <Module>(path: string) => Promise<Module>;
  /** Returns the awaited expressions reached since the last call, identified by file, number and text. */
  readonly reached: () => string[];
  /** Makes the next promise that this expression awaits reject. */
  readonly reject: (expression: string) => void;
  readonly close: () => Promise<void>;
}

/** Loads modules in which a test can reject every promise that `src/delivery`, `src/config` and `src/http` await. */
export async function openSeams(): Promise<Seams> {
  const reached = new Set<string>();
  let target: string | undefined;
  const awaited = (expression: string, value: unknown): unknown => {
    reached.add(expression);
    if (expression !== target) return value;
    target = undefined;
    Promise.resolve(value).catch(() => {});
    return Promise.reject(new Error(`rejected by the test: ${expression}`));
  };
  Object.assign(globalThis, { [HOOK]: awaited });
  const server: ViteDevServer = await createServer({
    root,
    configFile: false,
    logLevel: 'silent',
    appType: 'custom',
    esbuild: { target: 'es2022' },
    resolve: { alias },
    optimizeDeps: { noDiscovery: true },
    server: { middlewareMode: true, hmr: false, ws: false, watch: null },
    plugins: [hookAwaits()],
  });
  return {
    load: async <Module>(path: string) => (await server.ssrLoadModule(path)) as Module,
    reached: () => {
      const all = [...reached];
      reached.clear();
      return all;
    },
    reject: (expression) => {
      target = expression;
    },
    close: async () => {
      Reflect.deleteProperty(globalThis, HOOK);
      await server.close();
    },
  };
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly argument?: Node;
}

function hookAwaits(): Plugin {
  return {
    name: 'hook-awaits',
    enforce: 'post',
    transform(code, id) {
      const [, file] = /\/src\/((?:delivery|config|http)\/[\w/-]+\.ts)$/.exec(id) ?? [];
      if (file === undefined) return undefined;
      const operands: Node[] = [];
      collect(this.parse(code), operands);
      const edits = operands.flatMap(({ start, end }, at) => {
        const text = code.slice(start, end).replace(/\s+/g, ' ').slice(0, 60);
        const name = JSON.stringify(`${file} ${at + 1}: await ${text}`);
        return [
          { at: start, text: `globalThis.${HOOK}(${name}, ` },
          { at: end, text: ')' },
        ];
      });
      let hooked = code;
      for (const { at, text } of edits.sort((a, b) => b.at - a.at))
        hooked = hooked.slice(0, at) + text + hooked.slice(at);
      return { code: hooked, map: null };
    },
  };
}

/** Returns the operands of all `await` expressions within a syntax node. */
function collect(node: unknown, operands: Node[]): void {
  if (Array.isArray(node)) {
    for (const child of node) collect(child, operands);
  } else if (typeof node === 'object' && node !== null) {
    const { type, argument } = node as Partial<Node>;
    if (type === 'AwaitExpression' && argument !== undefined) operands.push(argument);
    for (const child of Object.values(node)) collect(child, operands);
  }
}
