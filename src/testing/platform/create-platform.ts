import type { Platform, PlatformOptions } from './platform-options.ts';

/**
 * Starts a stand-in for the platform, for tests of programs that deploy, call or rate agents. It is in memory, and
 * accepts only requests that the platform's interface allows. Rejects with the same errors as `createReceiver`.
 */
export async function createPlatform(options: PlatformOptions = {}): Promise<Platform> {
  const { startPlatform } = await import('./platform.ts');
  return startPlatform(options);
}
