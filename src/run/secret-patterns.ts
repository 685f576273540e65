/**
 * What keys of well-known services, tokens and passwords in URLs look like, for `redact({ patterns: secretPatterns })`. They
 * find what has a form of its own, and little else; each takes a time in proportion to the text. Each begins with its
 * literal characters, which the engine can look for quickly, and tells after them that no word stood before.
 */
export const secretPatterns: readonly RegExp[] = Object.freeze([
  // OpenAI, Anthropic, OpenRouter, DeepSeek: letters alone make a word, so a digit is asked for.
  /sk-(?<![\w-]sk-)(?=[A-Za-z_-]{0,64}\d)[\w-]{20,512}/,
  // LangSmith
  /lsv2_(?<!\wlsv2_)[a-z]{2}_[\da-zA-Z_]{20,128}/,
  // GitHub
  /gh[pousr]_(?<!\w....)[\da-zA-Z]{36,255}/,
  /github_pat_(?<!\w.{11})\w{22,255}/,
  // GitLab
  /glpat-(?<!\w.{6})[\w-]{20,128}/,
  // AWS
  /A(?:KIA|SIA)(?<!\w....)[A-Z2-7]{16}(?!\w)/,
  // Slack
  /xox[abeoprs]-(?<!\w.{5})[\da-zA-Z-]{10,255}/,
  // Google
  /AIza(?<!\w....)[\w-]{35}(?![\w-])/,
  /GOCSPX-(?<!\w.{7})[\w-]{28}(?![\w-])/,
  // Stripe
  /[rs]k_(?:live|test)_(?<!\w.{8})[\da-zA-Z]{16,128}/,
  // npm
  /npm_(?<!\w....)[\da-zA-Z]{36}(?!\w)/,
  // Hugging Face
  /hf_(?<!\w...)[\da-zA-Z]{34}(?!\w)/,
  // Groq, xAI, Perplexity
  /(?:gsk_|xai-)(?<!\w....)[\da-zA-Z]{48,128}/,
  /pplx-(?<!\w.{5})[\da-zA-Z]{48}(?!\w)/,
  // JSON Web Tokens
  /eyJ(?<![\w-]eyJ)[\w-]{10,4096}\.eyJ[\w-]{10,8192}\.[\w-]{0,4096}/,
  // Private keys in PEM, also where the end is missing
  /-----BEGIN [A-Z\d ]{0,32}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-[^-]){0,16384}(?:-----END [A-Z\d ]{0,32}PRIVATE KEY(?: BLOCK)?-----)?/,
  // User and password of a URL
  /(?<=:\/\/)[^\s/:@"'<>`]{0,256}:[^\s/@"'<>`]{1,256}(?=@)/,
]);
