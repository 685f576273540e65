/** The package version. A test compares the version with `package.json`. */
export const version = '0.1.0';
