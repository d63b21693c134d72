import { type OptionTable, systemClock } from '../../core/index.ts'
import type {
  Credential,
  CredentialDescription,
  CredentialError,
  CredentialErrorCode,
  CredentialHost,
} from '../../credentials/index.ts'
import type { ResolvedContext } from '../../kubeconfig/index.ts'
import { outputOption, pluginHostOf } from '../cluster-source.ts'
import { defineCommand, FailedWithResult } from '../command.ts'
import type { CredentialReport } from './report.ts'

const hints: Partial<Record<CredentialErrorCode, string>> = {
  NOT_FOUND: 'install it, or put its directory into PATH',
  NOT_EXECUTABLE: 'name a program that you may run',
  VERSION_MISMATCH:
    'put the version that the plugin speaks into the exec section of the kubeconfig',
  INTERACTIVE_UNAVAILABLE: 'run this in a terminal, with nothing piped into it',
  POLICY_DENIED: 'if you trust the plugin, allow it in your kuberc (credentialPluginPolicy)',
  TOKEN_INVALID: 'remove spaces and line breaks from the token',
  TIMEOUT: 'run the plugin by hand: it may wait for an answer or for the network',
  CERTIFICATE_INVALID: 'ask who gave you this kubeconfig for a new one',
  CERT_KEY_MISMATCH: 'ask who gave you this kubeconfig for a new one',
}

const anyHint = 'run the plugin by hand, or ask who gave you this kubeconfig'

/** A failure in the words of a command: what is wrong, and once only what can be done about it. */
function credentialFailure({ code, message, hint }: CredentialError): {
  readonly code: string
  readonly message: string
  readonly hint: string
} {
  const isSaidTwice = hint !== undefined && message.endsWith(hint)
  return {
    code,
    message: isSaidTwice ? message.slice(0, -hint.length).trimEnd() : message,
    hint: hint ?? hints[code] ?? anyHint,
  }
}

const options = {
  context: {
    type: 'string',
    describe: 'context to look at',
    group: 'Kubeconfig',
    placeholder: 'NAME',
    defaultText: 'the current one',
  },
  kubeconfig: {
    type: 'path',
    describe: 'file to read instead of those that KUBECONFIG names',
    group: 'Kubeconfig',
    placeholder: 'FILE',
    defaultText: 'KUBECONFIG, or .kube/config in the home directory',
  },
  run: {
    type: 'boolean',
    default: true,
    describe: 'run the plugin; with --no-run only say what would run',
    group: 'Kubeconfig',
  },
  ...outputOption,
} as const satisfies OptionTable

/** The plugin that would run, if one counts. */
async function planOf(
  { cluster, user }: ResolvedContext,
  host: CredentialHost,
): Promise<CredentialReport['plugin']> {
  const { execClusterInfo, inspectPlugin } = await import('../../credentials/index.ts')
  if (!user.exec) return undefined
  const about = user.exec.provideClusterInfo ? { cluster: await execClusterInfo(cluster) } : {}
  const plan = await inspectPlugin({ exec: user.exec, ...about }, host.plugins)
  return { command: user.exec.command, ...plan }
}

/** Refuses what no connection could be made with, and no header could carry. */
async function describeUsable(credential: Credential): Promise<CredentialDescription> {
  const credentials = await import('../../credentials/index.ts')
  const { CredentialError, describeCredential, isSendableToken, problemOfKeyPair } = credentials
  const { token, clientCertificate: pair } = credential
  if (token && !isSendableToken(token.reveal()))
    throw new CredentialError('TOKEN_INVALID', 'the token has characters that cannot be sent')
  const problem = pair && problemOfKeyPair(pair.certPem, pair.keyPem.reveal())
  if (problem) throw new CredentialError(problem.code, `the user has ${problem.why}`)
  return describeCredential(credential)
}

/** Adds to the report step by step, so that a failure leaves what was found before it. */
class Inquiry {
  report: CredentialReport
  readonly #context: ResolvedContext
  readonly #host: CredentialHost

  constructor(context: ResolvedContext, host: CredentialHost) {
    this.report = { context, why: { used: [], ignored: [] } }
    this.#context = context
    this.#host = host
  }

  async make(run: boolean, signal: AbortSignal): Promise<void> {
    const { credentialSourceFor, explainChoice } = await import('../../credentials/index.ts')
    const why = explainChoice(this.#context)
    this.report = { ...this.report, why }
    const { source } = credentialSourceFor(this.#context, this.#host)
    const kinds = why.used.map(({ kind }) => kind)
    const plugin = kinds.includes('exec') ? await planOf(this.#context, this.#host) : undefined
    if (plugin) this.report = { ...this.report, plugin }
    const asksOthers = kinds.includes('exec') || kinds.includes('auth-provider')
    if (!source || (asksOthers && !run)) return
    const begin = systemClock.monotonic()
    try {
      const credential = await describeUsable(await source.current(signal))
      this.report = { ...this.report, credential }
    } finally {
      const runMs = systemClock.monotonic() - begin
      if (plugin) this.report = { ...this.report, plugin: { ...plugin, runMs } }
      source.dispose()
    }
  }
}

/** `sallyport credential`. */
export const credentialCommand = defineCommand({
  command: 'sallyport credential',
  summary:
    'Show which credential of a context is used and why, and what it says; never the credential itself',
  options,
  examples: [
    { line: 'sallyport credential', does: 'runs the plugin of the current context, if it has one' },
    {
      line: 'sallyport credential --context prod --no-run',
      does: 'says what would run, and runs nothing',
    },
  ],
  run: async ({ options: values }, io) => {
    const { CredentialError } = await import('../../credentials/index.ts')
    const { loadContext } = await import('../../kubeconfig/index.ts')
    const { credentialJson, credentialText } = await import('./report.ts')
    const sources = {
      explicitPath: values.kubeconfig,
      kubeconfig: io.env['KUBECONFIG'],
      home: io.homeDirectory,
      inCluster: { env: io.env },
    }
    const context = await loadContext(sources, values.context)
    for (const warning of context.warnings) io.stderr(`warning: ${warning}\n`)
    const inquiry = new Inquiry(context, { plugins: await pluginHostOf(io), registry: 'none' })
    const isJson = values.output === 'json'
    const showText = (): void => {
      if (!isJson) io.stdout(credentialText(inquiry.report, systemClock.now()))
    }
    try {
      await inquiry.make(values.run, io.drain)
    } catch (error) {
      if (!(error instanceof CredentialError)) throw error
      showText()
      throw new FailedWithResult(credentialFailure(error), credentialJson(inquiry.report))
    }
    if (isJson) io.stdout(`${JSON.stringify(credentialJson(inquiry.report))}\n`)
    else showText()
  },
})
