/**
 * Returns a function that compiles a regular expression at its first call. V8 parses a literal with `\p{…}` when it loads
 * the file, even inside a function that never runs, and each such literal takes up to a millisecond.
 */
export function latePattern(source: string, flags: string): () => RegExp {
  let pattern: RegExp | undefined;
  return () => {
    pattern ??= new RegExp(source, flags);
    return pattern;
  };
}
