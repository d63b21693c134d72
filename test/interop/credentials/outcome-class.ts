/** One of the words for what becomes of a request; the same for kubectl and for us. */
export type OutcomeClass = string

const waits = 'waits for ever'
const answered = 'answered'

/** What kubectl's words mean; the first that fits counts. */
const kubectlWords: readonly (readonly [pattern: RegExp, outcome: OutcomeClass])[] = [
  [/executable \S+ not found|cannot run executable found relative to/, 'plugin not found'],
  [/error: (open|unable to read) .*no such file/, 'file not usable'],
  [/no such file or directory/, 'plugin not found'],
  [/argument list too long/, 'exec info too large'],
  [/fork\/exec .*(permission denied|exec format error)/, 'plugin cannot be run'],
  [/failed with exit code -1/, 'plugin killed'],
  [/failed with exit code/, 'plugin failed'],
  [/cannot support interactive mode/, 'no terminal'],
  [/applying preferences/, 'policy not usable'],
  [/plugin.* not allowed|not permitted by the credential plugin allowlist/, 'plugin not allowed'],
  [/decoding stdout/, 'answer cannot be read'],
  [/plugin returned version/, 'answer in another version'],
  [/didn't return a status/, 'answer without status'],
  [/didn't return a token or cert|returned only certificate or key/, 'answer without credential'],
  [
    /private key does not match|failed parsing client key\/certificate|tls: failed to find/,
    'key pair not usable',
  ],
  [/invalid header field value/, 'token cannot be sent'],
  [/auth plugin has been removed|no Auth Provider found/i, 'auth-provider gone'],
  [/invalid apiVersion|error loading config|invalid interactiveMode/, 'kubeconfig refused'],
  [/must be specified for it to use|authProvider cannot be provided/, 'kubeconfig refused'],
  [/more than one authentication method/, 'kubeconfig refused'],
  [/Please enter Username/, 'asks for a user name'],
  [/Unauthorized|must be logged in/, 'unauthorized'],
]

/** How a program ended, and all that it said. */
export interface ProgramEnd {
  /** Undefined if it did not end by itself. */
  readonly code: number | null | undefined
  readonly said: string
}

/** What kubectl's outcome was; its own words if they are not known. */
export function classOfKubectl({ code, said }: ProgramEnd): OutcomeClass {
  if (code === undefined) return waits
  if (code === 0) return answered
  return kubectlWords.find(([pattern]) => pattern.test(said))?.[1] ?? said
}

const codeWords: Readonly<Record<string, OutcomeClass>> = {
  NOT_FOUND: 'plugin not found',
  INPUT_TOO_LARGE: 'exec info too large',
  NOT_EXECUTABLE: 'plugin cannot be run',
  SIGNAL: 'plugin killed',
  EXIT: 'plugin failed',
  INTERACTIVE_UNAVAILABLE: 'no terminal',
  POLICY_DENIED: 'plugin not allowed',
  DECODE: 'answer cannot be read',
  VERSION_MISMATCH: 'answer in another version',
  NO_STATUS: 'answer without status',
  NO_CREDENTIAL: 'answer without credential',
  CERTIFICATE_INVALID: 'key pair not usable',
  CERT_KEY_MISMATCH: 'key pair not usable',
  TOKEN_INVALID: 'token cannot be sent',
  FILE: 'file not usable',
  UNSUPPORTED: 'auth-provider gone',
  KUBECONFIG_INVALID: 'kubeconfig refused',
  CONFIG_INVALID: 'kubeconfig refused',
  TIMEOUT: 'plugin ended after its time',
  OUTPUT_TOO_LARGE: 'plugin ended for its flood',
}

/** What became of one request of ours. */
export interface AskOutcome {
  readonly status?: number
  readonly code?: string
  readonly message?: string
}

/** What our outcome was: that of the first request that failed. */
export function classOfOurs(outcomes: readonly AskOutcome[] | undefined): OutcomeClass {
  if (!outcomes) return waits
  const failed = outcomes.find(({ status }) => status !== 200)
  if (!failed) return answered
  if (failed.status === 401) return 'unauthorized'
  if (failed.message?.startsWith('the policy')) return 'policy not usable'
  return codeWords[failed.code ?? ''] ?? failed.code ?? `status ${failed.status}`
}
