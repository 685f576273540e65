/** Matches header and setting names that end like the name of a secret. */
const SECRET =
  /(?:auth|authorization|cookies?|credentials?|jwt|pass|passphrase|password|passwd|pwd|secret|session|token|(?:api|access|account|private|secret|signing|encryption|subscription|master|auth)[-_ ]?key)s?[-_\d]*$/i;

/** Replaces `names.ts` in browsers, because browsers record no payloads. */
export class SecretNames {
  kindOf(key: string): 'always' | undefined {
    return SECRET.test(key) ? 'always' : undefined;
  }
}
