import { vi } from 'vitest';
import { version } from '#src/base/version.ts';

/** Lets the next `import()` load the package as in a program that has just started. */
export function forgetPackage(): void {
  vi.resetModules();
  Reflect.deleteProperty(globalThis, Symbol.for(`runspan.shared.${version}`));
}
