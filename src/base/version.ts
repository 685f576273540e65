/** The package version. A test checks that `package.json` has the same version. */
export const version = '0.1.0';
