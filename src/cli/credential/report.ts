import { visibleLine } from '../../core/index.ts'
import type {
  CertificateDescription,
  CredentialDescription,
  CredentialExplanation,
  PluginPlan,
} from '../../credentials/index.ts'
import type { ResolvedContext } from '../../kubeconfig/index.ts'
import { textTable } from '../text-table.ts'

/** What is known about the credential of a context. */
export interface CredentialReport {
  readonly context: Pick<
    ResolvedContext,
    'contextName' | 'clusterName' | 'userName' | 'namespace' | 'cluster'
  >
  readonly why: CredentialExplanation
  readonly plugin?: PluginPlan & { readonly command: string; readonly runMs?: number }
  /** Absent if it was not fetched. */
  readonly credential?: CredentialDescription
}

type Row = readonly [name: string, value: string]

/** The report for a person. */
export function credentialText(report: CredentialReport, now: number): string {
  const { context, plugin, credential } = report
  const sections = [
    rows([
      ['Context', context.contextName],
      ['Cluster', `${context.clusterName} (${serverOf(context)})`],
      ['User', context.userName || '(none)'],
    ]),
    choiceTable(report.why),
    plugin ? rows(pluginRows(plugin, credential !== undefined)) : '',
    credential ? rows(credentialRows(credential, now)) : '',
  ]
  return sections.filter((section) => section !== '').join('\n')
}

/** The report for a program. */
export function credentialJson(report: CredentialReport): object {
  const { context, why, plugin, credential } = report
  return {
    context: context.contextName,
    cluster: { name: context.clusterName, server: serverOf(context) },
    user: context.userName,
    ...why,
    ...(plugin && { plugin }),
    ...(credential && { credential: withReadableTimes(credential) }),
  }
}

/** Some write a password into the address. */
function serverOf({ cluster: { server } }: CredentialReport['context']): string {
  const url = new URL(server)
  if (url.username === '' && url.password === '') return server
  url.username = ''
  url.password = ''
  return url.href
}

const time = (epochMs: number): string => new Date(epochMs).toISOString().replace('.000Z', 'Z')

function withReadableTimes(credential: CredentialDescription): object {
  const { clientCertificate: certificate, expiresAt } = credential
  return {
    ...credential,
    ...(certificate && {
      clientCertificate: {
        ...certificate,
        notBefore: time(certificate.notBefore),
        notAfter: time(certificate.notAfter),
      },
    }),
    ...(expiresAt !== undefined && { expiresAt: time(expiresAt) }),
  }
}

function choiceTable({ used, ignored }: CredentialExplanation): string {
  if (used.length + ignored.length === 0)
    return 'The user has no credential: requests are anonymous.\n'
  const cells = (counts: string) => (each: CredentialExplanation['used'][number]) => [
    each.kind,
    counts,
    visibleLine(each.from),
    each.reason,
  ]
  const table = textTable(
    ['CREDENTIAL', 'USED', 'FROM', 'WHY'],
    [...used.map(cells('yes')), ...ignored.map(cells('no'))],
  )
  return used.length > 0 ? table : `${table}\nNo credential is used: requests are anonymous.\n`
}

function pluginRows(plugin: NonNullable<CredentialReport['plugin']>, isDone: boolean): Row[] {
  const { resolvedPath, interactive, runMs } = plugin
  const mode = interactive ? ', may ask at the terminal' : ''
  const end = isDone ? 'took' : 'failed after'
  const took = runMs === undefined ? 'not run' : `${end} ${Math.round(runMs)} ms`
  return [['Plugin', `${resolvedPath} (${took}${mode})`]]
}

function credentialRows(credential: CredentialDescription, now: number): Row[] {
  const { token, basic, clientCertificate, expiresAt } = credential
  return [
    ...(token ? tokenRows(token) : []),
    ...(basic ? [['Username', basic.username] as const] : []),
    ...(clientCertificate ? certificateRows(clientCertificate) : []),
    [
      'Expires',
      expiresAt === undefined ? 'not stated' : `${time(expiresAt)} (${away(expiresAt - now)})`,
    ],
  ]
}

function tokenRows({
  form,
  characters,
  claims,
}: NonNullable<CredentialDescription['token']>): Row[] {
  const said = Object.entries(claims ?? {}).map(
    ([name, value]) => [`  ${name}`, claimText(name, value)] as const,
  )
  const what = form === 'jwt' ? 'JWT' : 'opaque token'
  return [['Token', `${what} of ${characters} characters, not shown`], ...said]
}

const certificateRows = (certificate: CertificateDescription): Row[] => [
  ['Certificate', certificate.subject],
  ['  issuer', certificate.issuer],
  ['  serial', certificate.serialNumber],
  ['  valid', `${time(certificate.notBefore)} to ${time(certificate.notAfter)}`],
]

const isTime = new Set(['exp', 'iat', 'nbf', 'auth_time'])

function claimText(name: string, value: unknown): string {
  if (isTime.has(name) && typeof value === 'number' && Math.abs(value) < 8e12) {
    return time(value * 1_000)
  }
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** How far away a moment is, in the two largest units. */
function away(ms: number): string {
  const seconds = Math.round(Math.abs(ms) / 1_000)
  const units = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3_600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'm'],
    [seconds % 60, 's'],
  ] as const
  const first = units.findIndex(([amount]) => amount > 0)
  const shown =
    first < 0
      ? '0s'
      : units
          .slice(first, first + 2)
          .map((unit) => unit.join(''))
          .join(' ')
  return ms < 0 ? `${shown} ago` : `in ${shown}`
}

/** Names of claims are texts of somebody else, as their values are. */
function rows(given: readonly Row[]): string {
  const lines = given.map((row) => row.map(visibleLine) as [string, string])
  const width = Math.max(...lines.map(([name]) => name.length))
  return lines.map(([name, value]) => `${name.padEnd(width)}   ${value}\n`).join('')
}
