// What a security reviewer is promised. A test proves a line when its title ends in `[security N]`; SECURITY.md has the same
// table. `later` says of what there is no test yet, and why.

/** @type {readonly { number: number, rule: string, later?: string }[]} */
export const lines = [
  {
    number: 1,
    rule: 'Keys, header values, credentials of proxies and addresses, and values under the names of secrets are in no line at any level, no error, no `onDrop`, no `stats()`, and in nothing that inspecting, cloning or writing down an exporter, a run, a receiver or a client shows. What a service answers to tracing is not repeated beyond its status; of what it answers to a client, errors keep the text without the keys and secrets that were sent, however they are written in it.',
  },
  {
    number: 2,
    rule: 'A key has 1 to 8192 printable ASCII characters. If the key is invalid, tracing is off, and one log line says so without the key. The `headers` option cannot replace headers that the library sets, and cannot inject further headers.',
  },
  {
    number: 3,
    rule: 'Names of parts are made of UUIDs and fixed words, whatever ids and names are given; names of attachments stay within their quotes, types within their line, and the boundary is 128 random bits for each request.',
  },
  {
    number: 4,
    rule: 'No redirect is followed on any request. Address and key come from options and environment alone: never from what the service says, nor from headers of requests that came in. No key goes to a pre-signed address.',
  },
  {
    number: 5,
    rule: 'Over plain HTTP, keys and headers that look like credentials are sent only to this machine, according to the parsed address, unless `allowInsecure` is set. One log line names each key or header that is left out.',
  },
  {
    number: 6,
    rule: 'Certificates are always checked, and there is no option against that. `NODE_TLS_REJECT_UNAUTHORIZED=0` is told in one line.',
  },
  {
    number: 7,
    rule: 'At most 64 KiB of an answer to tracing are kept, decompressed or not, 64 MiB of one to a client and 256 KiB of one that tells it of a failure, and the rest is broken off. What `/info` says is taken field by field and within bounds, or not at all.',
  },
  {
    number: 8,
    rule: 'The receiver listens on loopback addresses, and elsewhere only with a key, which is compared in constant time. After ten wrong keys within a minute, further wrong keys are answered with 429. A browser keeps a random session token, which a logout revokes. The receiver refuses other host names (DNS rebinding), pages of other origins and requests from other sites. It stores nothing that an HTML form can send, and no response lets another origin read it. Feedback with an unguessable token is the exception.',
  },
  {
    number: 9,
    rule: 'The receiver limits what it reads: bytes before and after decompression, parts, names, headers, the depth and number of JSON values, connections, and time.',
  },
  {
    number: 10,
    rule: 'No name that comes from elsewhere becomes a path: only the spool and the command touch files.',
  },
  {
    number: 11,
    rule: 'What runs hold is shown as text by the page, and nothing of it is run.',
  },
  {
    number: 12,
    rule: 'Keys such as `__proto__` are data like others and change no prototype. Options are read as own properties.',
  },
  {
    number: 13,
    rule: 'Every regular expression of ours takes steps in proportion to the text, which `limits.payloadBytes` bounds.',
  },
  {
    number: 14,
    rule: 'Nothing of the environment is recorded, and of the process five fields. Redaction takes effect before a run is queued, in messages and stacks too; where it fails, the field is hidden, and where it cannot be understood, everything.',
  },
  {
    number: 15,
    rule: 'Eight packages are installed with this one, and nine of theirs; none has a script that runs at installation, each has a hash in the lockfile, and the published files are those of a list.',
  },
  {
    number: 16,
    rule: 'No code is made of text, and none is loaded by a name that was worked out.',
  },
  {
    number: 17,
    rule: 'The number of log lines is limited. Each is a single line without terminal commands or characters that hide or reorder text, and contains no application data, except the message of a callback of yours that fails.',
  },
  {
    number: 18,
    rule: 'What is kept on disk is kept only where that is asked for, after redaction, without the key, and readable for its owner alone.',
  },
];
