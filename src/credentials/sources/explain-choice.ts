import type { ResolvedContext } from '../../kubeconfig/index.ts'

/** A way in which a user of a kubeconfig can prove who they are. */
export type CredentialKind =
  | 'client-certificate'
  | 'token'
  | 'token-file'
  | 'basic'
  | 'exec'
  | 'auth-provider'

/** One credential of a user, and why it is used or not. */
export interface ExplainedCredential {
  readonly kind: CredentialKind
  /** Where it comes from: a file, a command, a provider's name; never the credential itself. */
  readonly from: string
  readonly reason: string
}

/** Which credentials of a context count, and which are there but do not. */
export interface CredentialExplanation {
  readonly used: readonly ExplainedCredential[]
  readonly ignored: readonly ExplainedCredential[]
}

interface Present {
  readonly kind: CredentialKind
  readonly from: string
}

/** Says which credentials count, by kubectl's rules; `overHttp` for those who insist on sending them in clear. */
export function explainChoice(
  { cluster, user }: Pick<ResolvedContext, 'cluster' | 'user'>,
  overHttp = false,
): CredentialExplanation {
  const present = credentialsIn(user)
  if (!overHttp && new URL(cluster.server).protocol === 'http:') {
    const reason = 'the server is http://, where anybody on the way could read it'
    return { used: [], ignored: present.map((credential) => ({ ...credential, reason })) }
  }
  const winners = winnersAmong(present, user.username !== undefined)
  const isAlone = present.length === 1
  const judged = present.map((credential) => ({
    credential,
    ...judge(credential.kind, winners, isAlone),
  }))
  const only = (counts: boolean): ExplainedCredential[] =>
    judged
      .filter((each) => each.counts === counts)
      .map(({ credential, reason }) => ({ ...credential, reason }))
  return { used: only(true), ignored: only(false) }
}

/** What goes into the `Authorization` header, the strongest first, and why. */
const headerReasons = {
  'token-file': 'a token file goes before everything else in the header',
  token: 'a token goes before a plugin',
  basic: 'username and password go before a plugin',
} as const

type HeaderKind = keyof typeof headerReasons

interface Winners {
  readonly header: HeaderKind | undefined
  readonly certificate: 'client-certificate' | undefined
}

function winnersAmong(present: readonly Present[], hasUsername: boolean): Winners {
  const has = (kind: CredentialKind): boolean => present.some((each) => each.kind === kind)
  const header = (['token-file', 'token', 'basic'] as const).find(
    (kind) => has(kind) && (kind !== 'basic' || hasUsername),
  )
  return { header, certificate: has('client-certificate') ? 'client-certificate' : undefined }
}

interface Judgement {
  readonly counts: boolean
  readonly reason: string
}

const used = (reason: string): Judgement => ({ counts: true, reason })
const ignored = (reason: string): Judgement => ({ counts: false, reason })

function judge(
  kind: CredentialKind,
  { header, certificate }: Winners,
  isAlone: boolean,
): Judgement {
  if (kind === 'client-certificate') return used('a client certificate is part of every connection')
  if (kind === header) return used(isAlone ? 'nothing else is set' : headerReasons[kind])
  if (kind === 'exec') {
    const winner = header ?? certificate
    return winner ? ignored(`${winner} wins: the plugin is not run`) : used('nothing else is set')
  }
  if (header) return ignored(`${header} wins`)
  if (kind === 'auth-provider') return used('no token and no username is set')
  return ignored('a password without a username proves nothing')
}

function credentialsIn(user: ResolvedContext['user']): Present[] {
  const found: Present[] = []
  const certificate = user.clientCertificateData === undefined ? user.clientCertificate : 'inline'
  if (certificate !== undefined) found.push({ kind: 'client-certificate', from: certificate })
  if (user.tokenFile !== undefined) found.push({ kind: 'token-file', from: user.tokenFile })
  if (user.token) found.push({ kind: 'token', from: 'inline' })
  if (user.username !== undefined || user.password) {
    found.push({ kind: 'basic', from: user.username ?? 'password only' })
  }
  if (user.exec) found.push({ kind: 'exec', from: user.exec.command })
  if (user.authProvider) found.push({ kind: 'auth-provider', from: user.authProvider.name })
  return found
}
