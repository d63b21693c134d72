import { type OptionTable, systemClock } from '../../core/index.ts'
import type { Credential, CredentialDescription, CredentialHost } from '../../credentials/index.ts'
import type { ResolvedContext } from '../../kubeconfig/index.ts'
import { defineCommand } from '../command.ts'
import { credentialFailure } from '../credential-failure.ts'
import type { CredentialReport } from '../credential-report.ts'
import { FailedWithResult } from '../failed-with-result.ts'
import { pluginHostOf } from '../plugin-host.ts'
import { outputOption } from '../shared-options.ts'

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
    const { credentialJson, credentialText } = await import('../credential-report.ts')
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
