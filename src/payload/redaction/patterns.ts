/**
 * Patterns that match access tokens, private keys, passwords in URLs, and the API keys of well-known services. Pass
 * `secretPatterns` as the `patterns` option of `redact`. Each pattern runs in linear time.
 */
// Most patterns begin with literal characters, which the regex engine finds quickly. A lookbehind then checks the
// preceding character.
export const secretPatterns: readonly RegExp[] = Object.freeze([
  // API keys of OpenAI, Anthropic, OpenRouter and DeepSeek. A digit is required, because letters alone may be ordinary
  // words.
  /sk-(?<![\w-]sk-)(?=[A-Za-z_-]{0,64}\d)[\w-]{20,512}/,
  // LangSmith
  /lsv2_(?<!\wlsv2_)[a-z]{2}_[\da-zA-Z_]{20,128}/,
  /ls__(?<!\w....)[\da-f]{32}(?!\w)/,
  // GitHub
  /gh[pousr]_(?<!\w....)[\da-zA-Z]{36,255}/,
  /github_pat_(?<!\w.{11})\w{22,255}/,
  // GitLab
  /glpat-(?<!\w.{6})[\w-]{20,128}/,
  // AWS
  /A(?:KIA|SIA)(?<!\w....)[A-Z2-7]{16}(?!\w)/,
  /secret_?access_?key\W{1,8}[\da-z/+]{40}(?![\da-z/+])/i,
  // Azure
  /(?:Account|SharedAccess)Key=[\w/+]{32,128}={0,2}/,
  // Slack
  /xox[abeoprs]-(?<!\w.{5})[\da-zA-Z-]{10,255}/,
  /xapp-(?<!\w.{5})[\da-zA-Z-]{20,255}/,
  /(?:services|triggers|workflows)\/(?<=hooks\.slack\.com\/\w{8,9}\/)[\w/]{20,256}/,
  // Google
  /AIza(?<!\w....)[\w-]{35}(?![\w-])/,
  /GOCSPX-(?<!\w.{7})[\w-]{28}(?![\w-])/,
  /ya29\.(?<!\w.{5})[\w-]{20,2048}/,
  // Stripe keys, and webhook secrets in Stripe's format
  /[rs]k_(?:live|test)_(?<!\w.{8})[\da-zA-Z]{16,128}/,
  /whsec_(?<!\w.{6})[\w+/=]{24,128}/,
  // npm
  /npm_(?<!\w....)[\da-zA-Z]{36}(?!\w)/,
  // Hugging Face
  /hf_(?<!\w...)[\da-zA-Z]{34}(?!\w)/,
  // API keys of Groq, xAI and Perplexity
  /(?:gsk_|xai-)(?<!\w....)[\da-zA-Z]{48,128}/,
  /pplx-(?<!\w.{5})[\da-zA-Z]{48}(?!\w)/,
  // API keys of Cerebras, Replicate, Tavily and Pinecone
  /csk-(?<![\w-]csk-)[\da-z]{40,64}(?!\w)/,
  /r8_(?<!\w...)[\da-zA-Z]{37}(?!\w)/,
  /tvly-(?<!\w.{5})(?=[A-Za-z-]{0,64}\d)[\w-]{20,128}/,
  /pcsk_(?<!\w.{5})\w{30,128}/,
  // SendGrid
  /SG\.(?<!\w...)[\w-]{16,32}\.[\w-]{16,64}/,
  // Notion, Linear
  /ntn_(?<!\w....)[\da-zA-Z]{40,60}(?!\w)/,
  /secret_(?<!\w.{7})[\da-zA-Z]{43}(?!\w)/,
  /lin_(?:api|oauth)_(?<!\wlin_(?:api|oauth)_)[\da-zA-Z]{32,128}/,
  // Access tokens of Supabase, Vercel, DigitalOcean and Docker
  /sbp_(?<!\w....)[\da-f]{40}(?!\w)/,
  /sb_secret_(?<!\w.{10})[\w-]{20,64}/,
  /vc[aciprk]_(?<!\w....)[\w-]{24,128}/,
  /do[opr]_v1_(?<!\w.{7})[\da-f]{64}(?!\w)/,
  /dckr_[op]at_(?<!\w.{9})[\w-]{20,64}/,
  // Tokens of Telegram and Discord bots
  /(?<!\w)\d{8,10}:AA[\w-]{32,35}(?![\w-])/,
  /[MNO](?<![\w-].)[\w-]{23,27}\.[\w-]{6}\.[\w-]{27,40}(?![\w-])/,
  // The credentials after the scheme in an Authorization header
  /Bearer\s(?<!\w.{7})(?=[\w.~+/-]{0,64}\d)[\w.~+/-]{12,4096}={0,2}/i,
  /(?:apikey|basic|bearer|token)\s(?<=authorization\W{1,8}\w{5,6}\s)[\w.~+/-]{6,4096}={0,2}/i,
  // Text in base64 after `Basic`, in groups of four. Words have no digits and no padding.
  /Basic\s(?<!\w.{6})(?=[a-z\d+/]{0,64}[A-Z])(?=[A-Za-z+/]{0,64}[\d=])(?:[\w+/]{4}){1,1024}(?:[\w+/]{4}|[\w+/]{3}=|[\w+/]{2}==)(?![\w+/=])/i,
  // JSON Web Tokens
  /eyJ(?<![\w-]eyJ)[\w-]{10,4096}\.eyJ[\w-]{10,8192}\.[\w-]{0,4096}/,
  // Private keys in PEM format, with or without the end line
  /-----BEGIN [A-Z\d ]{0,32}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-[^-]){0,16384}(?:-----END [A-Z\d ]{0,32}PRIVATE KEY(?: BLOCK)?-----)?/,
  // The user and password in a URL
  /(?<=:\/\/)[^\s/:@"'<>`]{0,256}:[^\s/@"'<>`]{1,256}(?=@)/,
  // Values of environment variables, as in a file `.env`, where the form of the name is evidence enough
  /(?<=(?<!\w)[A-Z][A-Z\d_]{0,40}(?:PASS(?:WORD|WD)?|SECRET|TOKEN|(?:API|ACCESS|ENCRYPTION|PRIVATE|SECRET|SIGNING)_?KEY)=)(?:[^\s"'`,;&|()[\]{}<>\\$%][^\s"'`,;&|()[\]{}<>\\]{7,4095}|"[^"\n$<{]{8,4096}|'[^'\n$<{]{8,4096})/,
  // Values after the name of a secret and `=` or `:`, in any text. A digit is required, because other values may be words,
  // types and expressions, as in `token: string`. Calls such as `token = base64Of(` are no values.
  /[=:]>?\s{0,2}["'`]?(?<=(?:pass(?:word|wd|phrase)|secret|(?:api|access|account|private|secret)[_-]?key|(?<![a-z])(?:access|auth|refresh)?[_-]?token)["'`]?\s{0,2}[=:]>?\s{0,2}["'`]?)(?![\w.]{1,64}[([])(?=[^\s"'`,;&|()[\]{}<>\\$%]{0,64}\d)[^\s"'`,;&|()[\]{}<>\\]{8,4096}/i,
]);
