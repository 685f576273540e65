/** The package version. A test compares the version with `package.json`. */
export const version = '0.1.0';

/** Returns whether a version such as `22.15.0` is this version or a later one. */
export function isAtLeast(given: string, [majorMin, minorMin]: readonly [major: number, minor: number]): boolean {
  const [major = 0, minor = 0] = given.split('.').map(Number);
  return major > majorMin || (major === majorMin && minor >= minorMin);
}
