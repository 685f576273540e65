import { onTestFinished, vi } from 'vitest';
import { version } from '#src/base/version.ts';

/** Lets the next `import()` load the package as in a program that has just started. */
export function forgetPackage(): void {
  vi.resetModules();
  Reflect.deleteProperty(globalThis, Symbol.for(`runspan.shared.${version}`));
}

/** Loads the package as in a program that has just started. */
export async function freshPackage(): Promise<typeof import('#src/index.ts')> {
  forgetPackage();
  const runspan = await import('#src/index.ts');
  onTestFinished(async () => void (await runspan.shutdown({ timeoutMs: 1 })));
  return runspan;
}
