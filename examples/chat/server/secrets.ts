/** Gives a text without what is secret in it. */
export type Mask = (text: string) => string;

const MASKED = '[Redacted]';
/** What is shorter would be found within words, and is nothing to rely on. */
const CHARACTERS_MIN = 6;

/** Services and stores repeat at times what they were given, in texts that readers and logs are told. */
export function maskOf(secrets: readonly (string | undefined)[]): Mask {
  const masked = secrets.filter((secret) => secret !== undefined && secret.length >= CHARACTERS_MIN) as string[];
  // One may begin with another.
  masked.sort((one, other) => other.length - one.length);
  return (text) => masked.reduce((rest, secret) => rest.replaceAll(secret, MASKED), text);
}

/** The password of an address, as it stands there and as it is meant. */
export function passwordsOf(address: string | undefined): string[] {
  if (address === undefined || !URL.canParse(address)) return [];
  const { password } = new URL(address);
  try {
    return [password, decodeURIComponent(password)];
  } catch {
    return [password];
  }
}
